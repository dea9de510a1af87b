"""`Pipeline`: several functions in sequence on one device, fused where possible."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from attrs import frozen

from devicecore.cv import batches, catalog, results
from devicecore.cv.dispatch import device_for, function
from devicecore.cv.native import original
from devicecore.cv.preprocessing import normalize_images, preprocess
from devicecore.scope import current_device
from devicecore.transfer import as_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import torch

    from devicecore.cv.preprocessing import Dtype
    from devicecore.cv.recipe import Layout


@frozen
class PipelineStep:
    """One function, with all its arguments but the image.

    Attributes:
        name: OpenCV's name of the function.
        args: The arguments after the image.
        keywords: Those with names.
    """

    name: str
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def compute(self, images: Any) -> Any:
        """Compute it for an image, or for several.

        Raises:
            TypeError: It gives something that is no image.
        """
        outputs = function(self.name)(images, *self.args, **self.keywords)
        if isinstance(outputs, tuple):
            msg = f"{self.name} gives a tuple, so it is no step between images"
            raise TypeError(msg)
        return outputs

    def arguments(self) -> dict[str, Any] | None:
        """Return all arguments by their names, those that were not given too."""
        operation = catalog.find(self.name, "torch")
        if operation is None:
            return None
        try:
            bound = signature(operation.planner).bind(None, *self.args, **self.keywords)
        except TypeError:  # for OpenCV to judge, when it is called
            return None
        bound.apply_defaults()
        return bound.arguments


class Pipeline:
    """Functions of `devicecore.cv` one after the other: the images go to the device once.

    With *mean* or *std* the result is the input of a network: bytes become
    ``(image.astype(float32) / 255 - mean) / std``. Then a resize with INTER_LINEAR, BGR2RGB and a
    small Gaussian blur with sigma 0, each of the last two or not, are one or two kernels on CUDA,
    as in `preprocess`. The values are those of the functions one by one in any case.

    Args:
        steps: Each a function with its arguments, such as
            ``functools.partial(cv.resize, dsize=(224, 224))``; functions of ``cv2`` are taken for
            those of the same name.
        mean: What is taken off at the end, for each channel or for all; in parts of 255.
        std: What the rest is divided by.
        layout: ``"NCHW"`` or ``"NHWC"``, of the input of a network.
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``, of the same.

    Raises:
        TypeError: A step is something else.

    Examples:
        >>> import numpy as np
        >>> from functools import partial
        >>> from devicecore import cv
        >>> edges = cv.Pipeline(
        ...     [
        ...         partial(cv.cvtColor, code=cv.COLOR_BGR2GRAY),
        ...         partial(cv.Sobel, ddepth=cv.CV_16S, dx=1, dy=0),
        ...     ]
        ... )
        >>> edges(np.zeros((48, 64, 3), np.uint8)).shape
        (48, 64)
    """

    def __init__(
        self,
        steps: Iterable[Callable[..., Any]],
        *,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        layout: Layout = "NCHW",
        dtype: Dtype = "float32",
    ) -> None:
        self.steps: tuple[PipelineStep, ...] = tuple(map(_step, steps))
        self._is_input = mean is not None or std is not None
        self._named: dict[str, Any] = {
            "mean": 0.0 if mean is None else mean,
            "std": 1.0 if std is None else std,
            "layout": layout,
            "dtype": dtype,
        }
        self._fused = _fused(self.steps) if self._is_input else None

    def __call__(self, images: Any) -> Any:
        """Compute all steps.

        Args:
            images: An image, a batch of shape (images, height, width, channels), or a list of
                images of any sizes. Arrays go to the current device, tensors stay on theirs.

        Returns:
            Images as they were given; with *mean* or *std* a tensor on the device, with an axis for
            the images also where there is one.

        Raises:
            ValueError: The input of a network is asked for, of images that are no bytes, or that
                have several sizes.
            ScopeError: A tensor is on another device than the scope names.
        """
        is_list = isinstance(images, (list, tuple))
        if is_list and not images:
            msg = "a list of images has at least one"
            raise ValueError(msg)
        first = images[0] if is_list else images
        if self._fused is not None and (first.ndim > 2 and first.shape[-1] == 3):
            return preprocess(images, mode="stretch", **self._fused, **self._named)
        device = device_for(first, current_device())
        moves = isinstance(first, np.ndarray) and (self._is_input or device.device_type != "CPU")
        if moves:
            images = (
                [as_tensor(x, device) for x in images] if is_list else as_tensor(images, device)
            )
        for step in self.steps:
            images = step.compute(images)
        if self._is_input:
            return self._input(images)
        if not moves:
            return images
        if is_list:
            return [results.to_host(each) for each in images]
        return results.to_host(images)

    def _input(self, images: Any) -> torch.Tensor:
        several = batches.is_batch("", images)
        images_in = list(images) if several else [images]
        sizes = sorted({tuple(each.shape[:2]) for each in images_in})
        if len(sizes) > 1:
            msg = f"the input of a network has one size, not {sizes}; add a resize"
            raise ValueError(msg)
        return normalize_images(images_in, **self._named)

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(step.name for step in self.steps)})"


def _step(given: Callable[..., Any]) -> PipelineStep:
    plain: partial[Any] | None = given if isinstance(given, partial) else None
    called: Any = plain.func if plain else given
    name = getattr(called, "__name__", "")
    known = name in catalog.TORCH or name in catalog.HOST
    if not known or called not in {function(name), original(name)}:
        msg = (
            f"{given!r} is no function of devicecore.cv with its arguments; a step is one such as "
            "functools.partial(cv.resize, dsize=(224, 224))"
        )
        raise TypeError(msg)
    return PipelineStep(name, plain.args, plain.keywords) if plain else PipelineStep(name, (), {})


def _fused(steps: Sequence[PipelineStep]) -> dict[str, Any] | None:
    """Return the arguments of `preprocess` that stand for the steps, if there are any."""
    match [step.name for step in steps]:
        case ["resize"] | ["resize", "cvtColor" | "GaussianBlur"]:
            pass
        case ["resize", "cvtColor", "GaussianBlur"]:
            pass
        case _:
            return None
    preprocess_arguments: dict[str, Any] = {}
    for step in steps:
        arguments = step.arguments()
        if arguments is None or arguments["dst"] is not None:
            return None
        match step.name, arguments:
            case (
                "resize",
                {"dsize": (int(), int()) as size, "interpolation": cv2.INTER_LINEAR},
            ) if not (arguments["fx"] or arguments["fy"]):
                preprocess_arguments["size"] = size
            case "cvtColor", {"code": cv2.COLOR_BGR2RGB, "dstCn": 0}:
                preprocess_arguments["color"] = cv2.COLOR_BGR2RGB
            case (
                "GaussianBlur",
                {"ksize": (int(), int()), "sigmaX": 0, "sigmaY": 0, "hint": 0},
            ) if arguments["borderType"] == cv2.BORDER_DEFAULT:
                preprocess_arguments["blur"] = arguments["ksize"]
            case _:
                return None
    return preprocess_arguments
