"""Primitives of OpenCV's functions."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import cv2
from attrs import frozen

from devicecore.cv import catalog
from devicecore.cv.dispatch import compute_by_kernel
from devicecore.cv.native import original
from devicecore.cv.policy import KernelPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Result

    Shape = tuple[int, ...]
    Rule = Callable[[Any, dict[str, Any]], Sequence[Result] | None]

_PLANE_AXES = 2


@frozen(cache_hash=True)
class OpenCVPrimitive:
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
        if any(each.ndim == 3 and each.shape[2] == 1 for each in _images(args, kwargs)):
            return None  # of a single channel OpenCV drops the axis, or not
        if self._is_tuple_of_one(plan.result):
            return None
        return plan.result

    def _is_tuple_of_one(self, results: Sequence[Result]) -> bool:
        """Return whether OpenCV returns a tuple that has one image: `cv2.split` of a plane."""
        return self.row.outputs == ("mv",) and len(results) == 1

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
        return "its result is a tuple with a single plane"

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
        return compute_by_kernel(device, policy, self.function, _batches(args), _named(kwargs))


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


RECORDED = {name: OpenCVPrimitive(name) for name, row in catalog.TORCH.items() if row.recorded}
"""The functions whose calls can be recorded, by OpenCV's names."""
