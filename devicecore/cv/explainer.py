"""`Explainer`: why a call has no kernel, or none that is exact enough."""

from __future__ import annotations

from inspect import signature
from itertools import islice
from typing import TYPE_CHECKING, Any

import cv2
from attrs import evolve

from devicecore.cv.environment import environment
from devicecore.cv.image import Image
from devicecore.cv.reasons import Reasons
from devicecore.cv.refusal_causes import find_causes
from devicecore.cv.refusals import (
    format_value,
    names_of_positional,
    why_no_signature,
    why_not_a_border_value,
    why_not_a_number,
    why_not_an_image,
)
from devicecore.cv.sequences import rebuild_sequence
from devicecore.kernels.exactness import is_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from devicecore.cv.operation import Operation
    from devicecore.cv.reasons import KeyedCall
    from devicecore.kernels import Exactness

# Calls whose arguments are tried where a call is refused.
_MOST_EXAMPLES = 200
# Annotations of parameters that are single numbers.
_NUMBERS = frozenset({"bool", "float", "int"})


class Explainer:
    """Says which argument, type or flag it is about.

    Args:
        operation: Whose calls.
    """

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._reasons = Reasons()
        parameters = signature(operation.planner).parameters.values()
        kinds = {each.name: each.annotation for each in parameters if each.annotation in _NUMBERS}
        kinds |= {each.name: "bool" for each in parameters if type(each.default) is bool}
        self._numbers: Mapping[str, str] = kinds
        self._defaults = {each.name: each.default for each in parameters}

    def why_no_plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return why the planner is not asked, or nothing."""
        operation = self._operation
        if environment().is_inexact:
            return "IPP may give values here that are not OpenCV's (cv2.ipp.useIPP_NotExact)"
        if reason := why_no_signature(operation.name, args, kwargs):
            return reason
        named = dict(zip(operation.parameters, args, strict=False)) | dict(kwargs)
        # Of empty images, and of calls that make no sense, OpenCV has its own words.
        for name, value in named.items():
            if reason := why_not_an_image(name, value) or why_not_a_border_value(name, value):
                return reason
        if not _is_of_images(args[0] if args else kwargs.get(operation.images[0])):
            first = operation.parameters[0] if args else operation.images[0]
            return f"{first} is no array with two or three axes"
        for name, kind in self._numbers.items():
            if name in named and (reason := why_not_a_number(name, named[name], kind)):
                return reason
        return ""

    def why_not(self, call: KeyedCall, missing: frozenset[str]) -> str:
        """Return why there is no plan for a call.

        Args:
            call: The call.
            missing: The element types that its device has not.
        """
        return call.misplaced or self._reasons.text("", call, lambda: self._why_not(call, missing))

    def _why_not(self, call: KeyedCall, missing: frozenset[str]) -> str:
        operation, args, kwargs = self._operation, call.positional, call.named
        for dtype in sorted(missing):
            other = _with_missing(args, missing - {dtype}), _with_missing(kwargs, missing - {dtype})
            if operation.make_plan(*other) is not None:
                return f"it needs {dtype} for these arguments, and the device has none"
        if reason := self.why_no_plan(args, kwargs):
            return reason
        if len(args) > len(operation.parameters):
            many = len(operation.parameters)
            return f"there are {len(args)} arguments, and {many} parameters"
        causes = self._reasons.causes(
            environment(),
            call,
            lambda: find_causes(
                self._named(call),
                lambda changed: operation.call_planner((), changed) is None,
                self._known_arguments(missing),
            ),
        )
        if causes:
            return "no kernel for " + self._written(causes, call)
        every = [name for name, value in self._named(call).items() if self._is_told(name, value)]
        return f"no kernel for any call with this OpenCV {cv2.__version__}: " + self._written(
            every, call
        )

    def why_only(self, promise: Exactness, call: KeyedCall, accepted: Exactness) -> str:
        """Return which arguments a call has to thank for what is promised of it, and is too little.

        Args:
            promise: What is promised.
            call: The call.
            accepted: The loosest promise that the caller takes.
        """
        operation, about = self._operation, (promise, accepted)

        def is_refused(arguments: Mapping[str, Any]) -> bool:
            plan = operation.call_planner((), arguments)
            return plan is None or not is_within(plan.promise, accepted)

        def search() -> tuple[str, ...]:
            known = self._known_arguments(_missing_in(call))
            return find_causes(self._named(call), is_refused, known)

        def write() -> str:
            causes = self._reasons.causes((environment(), *about), call, search)
            if not causes:
                return f"it is only {promise}, whatever the arguments"
            return f"it is only {promise} for {self._written(causes, call)}"

        return self._reasons.text(about, call, write)

    def _named(self, call: KeyedCall) -> dict[str, Any]:
        """Return the arguments by the names of the planner's parameters."""
        return dict(zip(self._operation.parameters, call.positional, strict=False)) | dict(
            call.named
        )

    def _is_told(self, name: str, value: Any) -> bool:
        default = self._defaults.get(name)
        return value is not None and not (type(value) is type(default) and value == default)

    def _written(self, names: Sequence[str], call: KeyedCall) -> str:
        """Return arguments as a program would write them, by OpenCV's names of them."""
        name, own = self._operation.name, self._operation.parameters
        given = names_of_positional(name, own, call.positional, call.named)
        count = len(call.positional)
        shown = dict(zip(own[:count], given[:count], strict=False))
        arguments = self._named(call)
        return ", ".join(
            f"{(key := shown.get(each, each))}={format_value(name, key, arguments[each])}"
            if each in arguments
            else f"{each} is not given"
            for each in names
        )

    def _known_arguments(self, missing: frozenset[str]) -> Iterator[dict[str, Any]]:
        for args, kwargs in islice(self._operation.examples(), _MOST_EXAMPLES):
            positional, named = self._operation.describe(args, kwargs, missing)
            yield dict(zip(self._operation.parameters, positional, strict=False)) | named


def _is_of_images(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(each, Image) for each in value)
    return isinstance(value, Image)


def _with_missing(value: Any, missing: frozenset[str]) -> Any:
    """Return arguments with images on a device that has not these element types."""
    if isinstance(value, Image):
        return evolve(value, missing=missing)
    if isinstance(value, dict):
        return {key: _with_missing(each, missing) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return rebuild_sequence(value, (_with_missing(each, missing) for each in value))
    return value


def _missing_in(value: Any) -> frozenset[str]:
    """Return the element types that the device of the first image of a call has not."""
    for each in (*value.positional, *value.named.values()):
        one = each[0] if isinstance(each, (list, tuple)) and each else each
        if isinstance(one, Image):
            return one.missing
    return frozenset()
