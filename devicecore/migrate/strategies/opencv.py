"""Computes OpenCV's functions by the kernels of `devicecore.cv`."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import RefusedCallError
from devicecore.first_use import first_use
from devicecore.migrate.calls.arrays import find_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.cv.policy import KernelPolicy
    from devicecore.device import Device
    from devicecore.migrate.calls.strategy import Strategy
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Primitive

# Of an image: rows, columns and channels.
_MOST_AXES = 3


@frozen
class OpenCVStrategy:
    """Computes one of OpenCV's functions by whichever kernel promises enough.

    Attributes:
        name: OpenCV's name of the function.
    """

    name: str
    runs_original: bool = field(init=False, default=False)

    @property
    def recorded(self) -> Primitive | None:
        """What records its calls in a frame; None if they are computed at once."""
        from devicecore.migrate.recording.opencv_primitives import RECORDED  # it imports OpenCV

        return RECORDED.get(self.name)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],  # noqa: ARG002 - it is known by its name
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return OpenCV's result, computed on *device*.

        Raises:
            RefusedCallError: No kernel promises as much as the plan asks for.
        """
        if not _is_plain(args, kwargs) and (reason := _why_only_opencv(self.name, args, kwargs)):
            refused = {"the migrator": reason}
            raise RefusedCallError("cv2." + self.name, device.name, refused)
        compute_by_kernel, policy = _by(options)
        return compute_by_kernel(device, policy, self.name, args, kwargs)


# Most arguments are of these, and time is short.
_NUMBERS = (int, float, bool, str, type(None))


def _is_plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether all arguments are arrays of one image each, numbers, and tuples of those."""
    array = sys.modules["numpy"].ndarray
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is array:
            if value.ndim > _MOST_AXES:
                return False
        elif kind is tuple:
            for each in value:
                if type(each) not in _NUMBERS:
                    return False
        elif kind not in _NUMBERS:
            return False
    return True


@cache
def _by(options: Options) -> tuple[Callable[..., Any], KernelPolicy]:
    """Return what computes calls, and which kernels it takes."""
    with first_use():  # torch, for one, may not be imported yet
        from devicecore.cv import kernel_choice  # noqa: F401 - with what computes calls
        from devicecore.cv.dispatch import compute_by_kernel
        from devicecore.cv.policy import KernelPolicy

    return compute_by_kernel, KernelPolicy(
        label=options.kernel, accepted=options.accept, is_strict=True
    )


def _why_only_opencv(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return why a call means something else to OpenCV than to `devicecore.cv`, or nothing.

    That one also takes tensors, and several images in one array or in a list.
    """
    import numpy as np

    from devicecore.cv.batches import is_batch

    values = [*args, *kwargs.values()]
    for array in find_arrays(values):
        if type(array) not in (np.ndarray, np.memmap):
            return f"OpenCV may take a {type(array).__name__} for something else"
        if array.ndim > _MOST_AXES:
            return f"an array of {array.ndim} axes is no image"
    if any(is_batch(name, value) for value in values):
        return "to OpenCV these are not several images"
    return ""


def strategies() -> Mapping[str, Strategy]:
    """Return one for each of OpenCV's functions that has a kernel."""
    from devicecore.cv import catalog, native  # noqa: F401 - it takes OpenCV's own, before others

    # Methods of OpenCV's objects are no functions of its module.
    names = [name for name in catalog.TORCH if "_apply" not in name]
    return {f"cv2.{name}": OpenCVStrategy(name) for name in names}
