"""OpenCV's functions in a recorded frame: which shape and type their results will have."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from attrs import frozen

from devicecore.cv import catalog
from devicecore.cv.dispatch import computed
from devicecore.cv.image import image_of
from devicecore.cv.native import original
from devicecore.cv.ops.resize.torch import axes_of
from devicecore.cv.policy import KernelPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Result

    Shape = tuple[int, ...]
    Rule = Callable[[Any, dict[str, Any]], Sequence[Result] | None]

_PLANE_AXES = 2
# Of types as `ddepth` names them.
_DEPTHS: Mapping[int, Any] = {
    cv2.CV_8U: np.dtype(np.uint8),
    cv2.CV_16U: np.dtype(np.uint16),
    cv2.CV_16S: np.dtype(np.int16),
    cv2.CV_32F: np.dtype(np.float32),
    cv2.CV_64F: np.dtype(np.float64),
}


@frozen(cache_hash=True)
class VisionOperation:
    """One of OpenCV's functions.

    Attributes:
        function: OpenCV's name of it.
    """

    function: str

    @property
    def name(self) -> str:
        """The name that programs call it by."""
        return f"cv2.{self.function}"

    @property
    def row(self) -> catalog.OpInfo:
        """The function's row in the catalogue."""
        return catalog.find_row(self.function)

    def takes(self, place: int | str, /) -> bool:
        """Return whether an array as that argument is an image, and not a table or a matrix."""
        return place in _images_of(self.function)

    def apart(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return arguments without the array that the result is to be written into, and that.

        None stands for none, and for one that may change what the result is.
        """
        place = kwargs.get("dst")
        if place is None or not self.row.records_dst or kwargs.get("mask") is not None:
            return kwargs, None
        return {name: value for name, value in kwargs.items() if name != "dst"}, place

    def abstract_eval(
        self, args: Sequence[Any], kwargs: dict[str, Any], options: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type of the result, or of several, if a kernel computes it.

        That kernel promises what the plan asks for.
        """
        operation = catalog.find(self.function, "torch")
        if operation is None or operation.destination(args, kwargs) is not None:
            return None
        plan = operation.plan(args, kwargs)
        if plan is None or not (options is None or _policy(options).accepts(plan.promise)):
            return None
        try:
            bound = signature(operation.planner).bind(*args, **kwargs)
        except TypeError:  # for OpenCV to say
            return None
        bound.apply_defaults()
        given = bound.arguments
        first = given[operation.parameters[0]]
        if any(each.ndim == 3 and each.shape[2] == 1 for each in _images(args, kwargs)):
            return None  # of a single channel OpenCV drops the axis, or not
        return _RULES[self.function](first, given)

    @property
    def parameters(self) -> Sequence[str]:
        """The names of its parameters, in order; none if this OpenCV has no kernel."""
        operation = catalog.find(self.function, "torch")
        return () if operation is None else operation.parameters

    def why_not(
        self, args: Sequence[Any], kwargs: dict[str, Any], options: Options | None, /
    ) -> str:
        """Return why `abstract_eval` has none for a call: the argument, the type or the flag."""
        operation = catalog.find(self.function, "torch")
        if operation is None:
            return f"there is no kernel of {self.name} for OpenCV {cv2.__version__}"
        if operation.destination(args, kwargs) is not None:
            return "a place for the result is given (dst), and samples record new images only"
        plan = operation.plan(args, kwargs)
        if plan is None:
            return operation.why_not(args, kwargs)
        if options is not None and not _policy(options).accepts(plan.promise):
            reason = operation.why_not(args, kwargs, accepted=_policy(options).accepted)
            return f"no kernel gives {options.accept} values, as the plan wants: {reason}"
        if any(each.ndim == 3 and each.shape[2] == 1 for each in _images(args, kwargs)):
            return "an image has a third axis with one channel, which OpenCV may drop"
        given = dict(zip(operation.parameters, args, strict=False)) | kwargs
        named = ", ".join(
            f"{name}={value!r}" for name, value in given.items() if isinstance(value, (int, float))
        )
        return "the shape or type of its result is not known beforehand" + (
            f" for {named}" if named else ""
        )

    def impl(self, args: Sequence[Any], kwargs: dict[str, Any], /) -> Any:
        """Let OpenCV compute it."""
        return original(self.function)(*args, **kwargs)

    def lower(
        self,
        device: Device,
        options: Options | None,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        /,
    ) -> Any:
        """Compute it by a kernel.

        Raises:
            RefusedCallError: No kernel promises as much as the plan asks for.
        """
        assert options is not None  # all calls of the program have them
        policy = _policy(options)
        return computed(device, policy, self.function, _batches(args), _named(kwargs))


@cache
def _images_of(function: str) -> frozenset[int | str]:
    """Return the places and the names of the parameters that are images."""
    operation = catalog.find(function, "torch")
    assert operation is not None  # there is one for each rule
    names = [name for name in operation.images if name != "lut"]
    return frozenset([*names, *map(operation.parameters.index, names)])


def _images(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Any]:
    for value in (*args, *kwargs.values()):
        if type(value) is list or type(value) is tuple:
            yield from _images(value, {})
        elif hasattr(value, "results"):
            yield value


@cache
def _policy(options: Options) -> KernelPolicy:
    return KernelPolicy(label=options.kernel, accepted=options.accept, is_strict=True)


def _batches(values: Sequence[Any]) -> list[Any]:
    """Return tensors of planes with an axis for their only channel."""
    return [_batch(each) for each in values]


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _batch(each) for name, each in values.items()}


def _batch(value: Any) -> Any:
    if type(value) is list or type(value) is tuple:
        return type(value)(map(_batch, value))
    if hasattr(value, "data_ptr") and value.ndim == 3:
        return value.unsqueeze(-1)
    return value


def _as_first(first: Any, _: Mapping[str, Any]) -> Sequence[Result]:
    return (first.results[0],)


def _sized(first: Any, size: tuple[int, int], dtype: Any = None) -> Sequence[Result]:
    width, height = size
    return (((height, width, *first.shape[2:]), dtype or first.dtype),)


def _resize(first: Any, given: Mapping[str, Any]) -> Sequence[Result] | None:
    image = image_of(first.shape, first.dtype)
    axes = axes_of(image, given["dsize"], given["fx"], given["fy"])
    return None if axes is None else _sized(first, (axes[0].target, axes[1].target))


def _warped(first: Any, given: Mapping[str, Any]) -> Sequence[Result]:
    width, height = given["dsize"] or (0, 0)
    return _sized(first, (width or first.shape[1], height or first.shape[0]))


def _remapped(first: Any, given: Mapping[str, Any]) -> Sequence[Result]:
    return (((*given["map1"].shape[:2], *first.shape[2:]), first.dtype),)


def _bordered(first: Any, given: Mapping[str, Any]) -> Sequence[Result]:
    height, width = first.shape[:2]
    width += given["left"] + given["right"]
    return _sized(first, (width, height + given["top"] + given["bottom"]))


def _turned(first: Any, given: Mapping[str, Any]) -> Sequence[Result]:
    height, width = first.shape[:2]
    is_half = given.get("rotateCode") == cv2.ROTATE_180
    return _sized(first, (width, height) if is_half else (height, width))


def _looked_up(first: Any, given: Mapping[str, Any]) -> Sequence[Result]:
    return ((first.shape, np.asarray(given["lut"]).dtype),)


def _in_colours(first: Any, given: Mapping[str, Any]) -> Sequence[Result]:
    colours = np.asarray(given["userColor"] if given["colormap"] is None else given["colormap"])
    is_grey = colours.ndim == _PLANE_AXES or colours.shape[2:] == (1,)
    return ((first.shape[:2] if is_grey else (*first.shape[:2], 3), np.dtype(np.uint8)),)


def _of_depth(first: Any, given: Mapping[str, Any]) -> Sequence[Result] | None:
    dtype: Any = first.dtype if given["ddepth"] == -1 else _DEPTHS.get(given["ddepth"])
    return None if dtype is None else ((first.shape, dtype),)


def _summed(first: Any, given: Mapping[str, Any]) -> Sequence[Result] | None:
    """Return what two images, or an image and a number, give."""
    second = given["src2"]
    has_two = hasattr(first, "results") and hasattr(second, "results")
    if given.get("dtype", -1) != -1 or not hasattr(first, "results"):
        return None
    if has_two and (second.shape, second.dtype) != (first.shape, first.dtype):
        return None
    return (first.results[0],)


def _bytes(first: Any, _: Mapping[str, Any]) -> Sequence[Result]:
    return ((first.shape, np.dtype(np.uint8)),)


def _plane_of_bytes(first: Any, _: Mapping[str, Any]) -> Sequence[Result]:
    return ((first.shape[:2], np.dtype(np.uint8)),)


def _merged(first: Any, _: Mapping[str, Any]) -> Sequence[Result] | None:
    if not all(hasattr(each, "results") and each.ndim == _PLANE_AXES for each in first):
        return None
    count = len(first)
    shape = first[0].shape
    return ((shape if count == 1 else (*shape, count), first[0].dtype),)


def _split(first: Any, _: Mapping[str, Any]) -> Sequence[Result] | None:
    if first.ndim == _PLANE_AXES:  # a tuple of one, where nothing else returns one
        return None
    return ((first.shape[:2], first.dtype),) * int(first.shape[2])


def _plane(first: Any, _: Mapping[str, Any]) -> Sequence[Result]:
    return ((first.shape[:2], first.dtype),)


# From the name of a code to its channels; codes of planes and of mosaics are left to OpenCV.
_CHANNELS = {"GRAY": 1, "BGRA": 4, "RGBA": 4}
_SPACES = ("BGR", "RGB", "BGRA", "RGBA", "GRAY", "XYZ", "YCrCb", "YUV", "HSV", "HLS", "Lab", "Luv")


def _colour_codes() -> dict[int, int]:
    """Return how many channels each code of `cv2.cvtColor` gives."""
    found = {}
    for name in dir(cv2):
        before, _, after = name.removeprefix("COLOR_").removesuffix("_FULL").partition("2")
        if name.startswith("COLOR_") and before in _SPACES and after in _SPACES:
            found[getattr(cv2, name)] = _CHANNELS.get(after, 3)
    return found


_CODES = _colour_codes()


def _coloured(first: Any, given: Mapping[str, Any]) -> Sequence[Result] | None:
    known = _CODES.get(given["code"])
    if known is None:
        return None
    channels: int = given["dstCn"] or known
    shape: tuple[int, ...] = first.shape[:2] if channels == 1 else (*first.shape[:2], channels)
    return ((shape, first.dtype),)


_RULES: dict[str, Rule] = {
    "resize": _resize,
    "warpAffine": _warped,
    "warpPerspective": _warped,
    "remap": _remapped,
    "copyMakeBorder": _bordered,
    "transpose": _turned,
    "rotate": _turned,
    "LUT": _looked_up,
    "applyColorMap": _in_colours,
    "cvtColor": _coloured,
    "merge": _merged,
    "split": _split,
    "extractChannel": _plane,
    "convertScaleAbs": _bytes,
    "inRange": _plane_of_bytes,
    "compare": _bytes,
    "filter2D": _of_depth,
    "sepFilter2D": _of_depth,
    "boxFilter": _of_depth,
    "Sobel": _of_depth,
    "Scharr": _of_depth,
    "Laplacian": _of_depth,
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "absdiff", "addWeighted"), _summed),
    **dict.fromkeys(("min", "max", "bitwise_and", "bitwise_or", "bitwise_xor"), _summed),
    **dict.fromkeys(("bitwise_not", "flip", "equalizeHist", "CLAHE_apply"), _as_first),
    **dict.fromkeys(("GaussianBlur", "blur", "medianBlur", "bilateralFilter"), _as_first),
    **dict.fromkeys(("erode", "dilate", "morphologyEx", "adaptiveThreshold"), _as_first),
}


RECORDED = {name: VisionOperation(name) for name in _RULES}
"""The functions whose calls can be recorded, by OpenCV's names."""
