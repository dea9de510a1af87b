"""`Operation`: one of OpenCV's functions in one kind of kernel, and the plans of its calls."""

from __future__ import annotations

from inspect import signature
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import Factory, field, frozen

from devicecore.cv.catalog import NOT_IN_PLACE, OUTPUTS
from devicecore.cv.device_types import missing_types
from devicecore.cv.environment import environment
from devicecore.cv.image import Image, Place, check_written, image_of, place_of
from devicecore.cv.kinds import kind_of
from devicecore.cv.plan import in_parts
from devicecore.cv.reasons import Reasons
from devicecore.cv.refusals import (
    decisive,
    why_no_signature,
    why_not_a_number,
    why_not_an_image,
    why_refused,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from devicecore.cv.plan import Plan
    from devicecore.device import Device

# A plan is kept for each kind of call; with more kinds than this, all are made anew.
_MOST_PLANS = 1024
_UNKNOWN = object()
# Of those, whose arguments are tried where a call is refused.
_MOST_EXAMPLES = 200
# Annotations of parameters that are single numbers.
_NUMBERS = frozenset({"bool", "float", "int"})
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
    _numbers: dict[str, str] = field(
        init=False, repr=False, default=Factory(lambda self: self._find_numbers(), True)
    )
    _outputs: tuple[int | None, ...] = field(
        init=False, repr=False, default=Factory(lambda self: self._find_outputs(), True)
    )
    _plans: dict[Any, Plan | None] = field(init=False, factory=dict, repr=False)
    _reasons: Reasons = field(init=False, factory=Reasons, repr=False)

    def _find_places(self) -> tuple[tuple[int, str], ...]:
        return tuple((self.parameters.index(name), name) for name in self.images)

    def _find_outputs(self) -> tuple[int | None, ...]:
        """Return the place of the parameter that each result is written into."""
        names = OUTPUTS.get(self.name, ("dst",))
        places = {name: place for place, name in enumerate(self.parameters)}
        return tuple(map(places.get, names))

    def _find_numbers(self) -> dict[str, str]:
        """Return the parameters that are single numbers, and of which kind."""
        parameters = signature(self.planner).parameters.values()
        found = {each.name: each.annotation for each in parameters if each.annotation in _NUMBERS}
        return found | {each.name: "bool" for each in parameters if type(each.default) is bool}

    def destination(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the argument that the result is to be written into, or None.

        Where there are several results, that is a tuple with an argument, or None, for each.
        """
        found = [self._argument(place, args, kwargs) for place in self._outputs]
        if len(found) == 1:
            return found[0]
        return None if all(each is None for each in found) else tuple(found)

    def _argument(self, place: int | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if place is None:
            return None
        return args[place] if place < len(args) else kwargs.get(self.parameters[place])

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

    def plan(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], device: Device | None = None
    ) -> Plan | None:
        """Return how a call is computed, or None if no kernel of this kind does it.

        Args:
            args: Positional arguments; those that are images have the axes of one image or of a
                batch.
            kwargs: The others.
            device: Where it is computed; None for a device that has all element types.
        """
        return self._plan(args, kwargs, missing_types(device))

    def _plan(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], missing: frozenset[str]
    ) -> Plan | None:
        positional, named = self.replaced(args, kwargs, lambda value: _image(value, missing))
        try:
            self._place(positional, named, self.images_in(args, kwargs))
        except ValueError:  # what comes out depends on the order of OpenCV's operations
            return None
        try:
            key = (*map(kind_of, positional), *map(kind_of, named.items()), environment())
            found = self._plans.get(key, _UNKNOWN)
        except TypeError:  # something that cannot be a key
            return self._made(positional, named)
        if found is _UNKNOWN:
            found = self._made(positional, named)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = found
        return found  # type: ignore[return-value]

    def _place(self, args: list[Any], kwargs: dict[str, Any], images: Sequence[Any]) -> None:
        """Put what matters of the place for the result where the caller gave one."""
        for index in self._outputs:
            given = self._argument(index, args, kwargs)
            if index is None or given is None:
                continue
            name = self.parameters[index]
            if name in self.images:
                count = len(given) if isinstance(given, (list, tuple)) else 1
                check_written(name, images, count)
            elif index < len(args):
                args[index] = self._checked(name, given, images)
            else:
                kwargs[name] = self._checked(name, given, images)

    def _checked(self, name: str, given: Any, images: Sequence[Any]) -> Place:
        """Return what is known of a place for the result.

        Raises:
            ValueError: It is for OpenCV to judge.
        """
        if not getattr(given, "ndim", 0):
            msg = f"{name} is of type {type(given).__name__}"
            raise ValueError(msg)
        try:
            place = place_of(given, images)
        except ValueError as error:
            msg = f"{name}: {error}"
            raise ValueError(msg) from None
        if place.is_operand and self.name in NOT_IN_PLACE:
            msg = f"{name} is an operand"
            raise ValueError(msg)
        return place

    def _made(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan | None:
        if self._why_no_plan(args, kwargs):
            return None
        found = self._planned(args, kwargs)
        return in_parts(found) if found is not None and self.label == "triton" else found

    def _planned(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan | None:
        try:
            return self.planner(*args, **kwargs)
        except (TypeError, ValueError, ArithmeticError):
            return None

    def _why_no_plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return why the planner is not asked, or nothing."""
        if environment().is_inexact:
            return "IPP may give values here that are not OpenCV's (cv2.ipp.useIPP_NotExact)"
        if reason := why_no_signature(self.name, args, kwargs):
            return reason
        named = dict(zip(self.parameters, args, strict=False)) | dict(kwargs)
        # Of empty images, and of calls that make no sense, OpenCV has its own words.
        for name, value in named.items():
            if reason := why_not_an_image(name, value):
                return reason
        first = self.parameters.index(self.images[0])
        if not _is_of_images(args[0] if args else kwargs.get(self.images[0])):
            return f"{self.parameters[0 if args else first]} is no array with two or three axes"
        for name, kind in self._numbers.items():
            if name in named and (reason := why_not_a_number(name, named[name], kind)):
                return reason
        return ""

    def why_not(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], device: Device | None = None
    ) -> str:
        """Return why `plan` has none for a call: the argument, the type or the flag."""
        missing = missing_types(device)
        for dtype in sorted(missing):
            if self._plan(args, kwargs, missing - {dtype}) is not None:
                return f"it needs {dtype} for these arguments, and the device has none"
        positional, named = self.replaced(args, kwargs, lambda value: _image(value, missing))
        try:
            self._place(positional, named, self.images_in(args, kwargs))
        except ValueError as error:
            return str(error)
        return self._reasons.find(
            environment(), positional, named, lambda: self._reason(positional, named)
        )

    def _reason(self, positional: Sequence[Any], named: Mapping[str, Any]) -> str:
        if reason := self._why_no_plan(positional, named):
            return reason
        if len(positional) > len(self.parameters):
            return f"there are {len(positional)} arguments, and {len(self.parameters)} parameters"
        arguments = dict(zip(self.parameters, positional, strict=False)) | dict(named)
        return why_refused(
            arguments, lambda changed: self._planned((), changed) is None, self._known_arguments()
        )

    def why_only(
        self,
        promise: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        is_accepted: Callable[[Any], bool],
    ) -> str:
        """Return which arguments a call has to thank for what is promised of it, and is too little.

        Args:
            promise: What is promised.
            args: Positional arguments.
            kwargs: The others.
            is_accepted: Says whether the caller takes results of another promise.
        """

        def is_refused(arguments: Mapping[str, Any]) -> bool:
            plan = self._planned((), arguments)
            return plan is None or not is_accepted(plan.promise)

        def reason() -> str:
            arguments = dict(zip(self.parameters, positional, strict=False)) | named
            found = decisive(arguments, is_refused, self._known_arguments())
            return f"it is only {promise} for {', '.join(found) or 'these arguments'}"

        positional, named = self.replaced(args, kwargs, lambda value: _image(value, frozenset()))
        return self._reasons.find(promise, positional, named, reason)

    def _known_arguments(self) -> Iterator[dict[str, Any]]:
        for args, kwargs in islice(self.examples(), _MOST_EXAMPLES):
            positional, named = self.replaced(
                args, kwargs, lambda value: _image(value, frozenset())
            )
            yield dict(zip(self.parameters, positional, strict=False)) | named

    def run(self, _device: Device | None, /, *args: Any, **kwargs: Any) -> Any:
        """Compute a call whose images are tensors on one device, and write into none of them.

        Whoever calls this puts the result into the `destination`.
        """
        plan = self.plan(args, kwargs, _device)
        if plan is None:
            why = self.why_not(args, kwargs, _device)
            msg = f"the {self.label} kernel of cv2.{self.name} is not for this call: {why}"
            raise NotImplementedError(msg)
        return plan.kernel(_device, *self.images_in(args, kwargs))

    def supports(self, _device: Device | None, /, *args: Any, **kwargs: Any) -> bool:
        """Return whether there is a kernel for such a call, on images that are tensors."""
        images = self.images_in(args, kwargs)
        if not images or any(isinstance(each, np.ndarray) for each in images):
            return False
        return self.plan(args, kwargs, _device) is not None

    def why_not_on(self, _device: Device | None, /, *args: Any, **kwargs: Any) -> str:
        """Return why `supports` says no."""
        arrays = [
            name
            for index, name in self._places
            if isinstance(self._argument(index, args, kwargs), np.ndarray)
        ]
        if arrays or not self.images_in(args, kwargs):
            name = arrays[0] if arrays else self.images[0]
            return f"{name} is no tensor, and kernels of {self.label} read tensors only"
        return self.why_not(args, kwargs, _device)

    def exactness(self, _device: Device | None, /, *args: Any, **kwargs: Any) -> Any:
        """Return what is promised of a call."""
        plan = self.plan(args, kwargs, _device)
        return None if plan is None else plan.promise


def _is_of_images(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(each, Image) for each in value)
    return isinstance(value, Image)


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    if getattr(value, "ndim", 0):
        return replace(value)
    if isinstance(value, (list, tuple)):
        found = [_replaced(each, replace) for each in value]
        return tuple(found) if isinstance(value, tuple) else found  # OpenCV tells them apart
    return value


def _image(value: Any, missing: frozenset[str]) -> Any:
    shape = value.shape
    if len(shape) not in _IMAGE_AXES:  # numbers for the channels, perhaps
        return value
    return image_of(shape[1:] if len(shape) == 4 else shape, value.dtype, missing)


def operation(
    *images: str,
    label: str = "torch",
    examples: Callable[[], Iterable[tuple[tuple[Any, ...], dict[str, Any]]]],
) -> Callable[[Callable[..., Plan | None]], Operation]:
    """Make an `Operation` of the decorated planner, which has the name of OpenCV's function."""
    return lambda planner: Operation(planner.__name__, label, planner, images, examples)
