"""`Operation`: one of OpenCV's functions in one kind of kernel, and the plans of its calls."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import Factory, field, frozen

from devicecore.cv.environment import environment
from devicecore.cv.image import Image, image_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import torch

    from devicecore.cv.plan import Plan

# A plan is kept for each kind of call; with more kinds than this, all are made anew.
_MOST_PLANS = 1024
# What a larger array holds is no part of a kind of call.
_LARGEST_KEY = 1 << 16
_UNKNOWN = object()
# Of an image or of a batch.
_IMAGE_AXES = (2, 3, 4)


@frozen(eq=False)
class Operation:
    """One of OpenCV's functions in one kind of kernel.

    Attributes:
        name: OpenCV's name of the function.
        label: The kind of kernel, such as ``"torch"``.
        planner: Has the function's own parameters, and is given an `Image` in the place of each
            image. Returns None where there is no kernel for such a call.
        images: The parameters that are images, or arrays that lie beside them on the device.
        parameters: The names of the function's parameters, in order.
        examples: Returns small calls, each a tuple of positional and a dict of other arguments.
    """

    name: str
    label: str
    planner: Callable[..., Plan | None] = field(repr=False)
    images: tuple[str, ...]
    examples: Callable[[], Iterable[tuple[tuple[Any, ...], dict[str, Any]]]] = field(repr=False)
    parameters: tuple[str, ...] = field(
        init=False, default=Factory(lambda self: tuple(signature(self.planner).parameters), True)
    )
    _places: tuple[tuple[int, str], ...] = field(
        init=False, repr=False, default=Factory(lambda self: self._find_places(), True)
    )
    _plans: dict[Any, Plan | None] = field(init=False, factory=dict, repr=False)

    def _find_places(self) -> tuple[tuple[int, str], ...]:
        return tuple((self.parameters.index(name), name) for name in self.images)

    def destination(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the argument that the result is to be written into, or None."""
        if "dst" not in self.parameters:
            return None
        place = self.parameters.index("dst")
        return args[place] if place < len(args) else kwargs.get("dst")

    def images_in(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the images among the arguments, also those in a list of images."""
        found: list[Any] = []
        for index, name in self._places:
            value = args[index] if index < len(args) else kwargs.get(name)
            if getattr(value, "ndim", 0):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                found.extend(each for each in value if getattr(each, "ndim", 0))
        return found

    def replaced(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], replace: Callable[[Any], Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with something else in the place of each image."""
        new, named = list(args), dict(kwargs)
        for index, name in self._places:
            if index < len(new):
                new[index] = _replaced(new[index], replace)
            elif name in named:
                named[name] = _replaced(named[name], replace)
        return new, named

    def plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan | None:
        """Return how a call is computed, or None if no kernel of this kind does it.

        Args:
            args: Positional arguments; those that are images have the axes of one image or of a
                batch.
            kwargs: The others.
        """
        positional, named = self.replaced(args, kwargs, _image)
        try:
            key = (*map(_key, positional), *map(_key, named.items()), environment())
            found = self._plans.get(key, _UNKNOWN)
        except TypeError:  # something that cannot be a key
            return self._made(positional, named)
        if found is _UNKNOWN:
            found = self._made(positional, named)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = found
        return found  # type: ignore[return-value]

    def _made(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan | None:
        # Of empty images, and of calls that make no sense, OpenCV has its own words.
        if any(isinstance(each, Image) and not each.pixels for each in (*args, *kwargs.values())):
            return None
        try:
            return self.planner(*args, **kwargs)
        except (TypeError, ValueError, ArithmeticError):
            return None

    def run(self, _device: object, /, *args: Any, **kwargs: Any) -> Any:
        """Compute a call whose images are tensors on one device; this is what kernels do."""
        plan = self.plan(args, kwargs)
        if plan is None:
            msg = f"the {self.label} kernel of cv2.{self.name} does not support these arguments"
            raise NotImplementedError(msg)
        images = self.images_in(args, kwargs)
        is_batch = images[0].ndim == 4
        result = plan.run(*map(_with_all_axes, images))
        return result if is_batch else _first(result)

    def supports(self, _device: object, /, *args: Any, **kwargs: Any) -> bool:
        """Return whether there is a kernel for such a call, on images that are tensors."""
        images = self.images_in(args, kwargs)
        if not images or any(isinstance(each, np.ndarray) for each in images):
            return False
        return self.plan(args, kwargs) is not None

    def exactness(self, _device: object, /, *args: Any, **kwargs: Any) -> Any:
        """Return what is promised of a call."""
        plan = self.plan(args, kwargs)
        return None if plan is None else plan.promise


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    if getattr(value, "ndim", 0):
        return replace(value)
    if isinstance(value, (list, tuple)):
        found = [_replaced(each, replace) for each in value]
        return tuple(found) if isinstance(value, tuple) else found  # OpenCV tells them apart
    return value


def _image(value: Any) -> Any:
    shape = value.shape
    if len(shape) not in _IMAGE_AXES:  # numbers for the channels, perhaps
        return value
    return image_of(shape[1:] if len(shape) == 4 else shape, value.dtype)


def _with_all_axes(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.ndim == 4:
        return tensor
    return tensor[None, :, :, None] if tensor.ndim == 2 else tensor[None]


def _first(result: Any) -> Any:
    """Return the result of the first image, in OpenCV's shape."""
    if isinstance(result, tuple):
        return tuple(map(_first, result))
    if isinstance(result, list):
        return list(map(_first, result))
    one = result[0]
    return one[:, :, 0] if one.ndim == 3 and one.shape[2] == 1 else one


def _key(value: Any) -> Any:
    """Return *value* as part of a key; 1, 1.0, True, 0.0 and -0.0 are all different ones."""
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_key, value))
    if isinstance(value, (np.ndarray, np.generic)):
        if value.nbytes > _LARGEST_KEY:
            raise TypeError
        return (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, float):
        return (type(value), value.hex())
    return (type(value), value)


def operation(
    *images: str,
    label: str = "torch",
    examples: Callable[[], Iterable[tuple[tuple[Any, ...], dict[str, Any]]]],
) -> Callable[[Callable[..., Plan | None]], Operation]:
    """Make an `Operation` of the decorated planner, which has the name of OpenCV's function."""
    return lambda planner: Operation(planner.__name__, label, planner, images, examples)
