"""`Operation`: one OpenCV function in one kind of kernel, and the plans of its calls."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import Factory, evolve, field, frozen

from devicecore.cv.cache_key import cache_key
from devicecore.cv.catalog import find, find_row
from devicecore.cv.device_types import missing_types
from devicecore.cv.environment import environment
from devicecore.cv.explainer import Explainer
from devicecore.cv.image import Place, check_written, image_of, place_of, places_of
from devicecore.cv.plan import in_parts
from devicecore.cv.reasons import KeyedCall
from devicecore.cv.result_rules import like_first
from devicecore.cv.sequences import rebuild_sequence
from devicecore.kernels.exactness import is_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from devicecore.cv.plan import Plan
    from devicecore.cv.result_rules import ArrayInfo, Rule
    from devicecore.device import Device
    from devicecore.kernels import Exactness

# A plan is kept for each kind of call; with more kinds than this, all are made anew.
_MOST_PLANS = 1024
_UNKNOWN = object()
# The parameter of OpenCV's that is a list of places, where results are several of one kind.
_LIST_OF_PLACES = "mv"
# The parameter for the one result that has a single axis, by OpenCV 5.
_HISTOGRAM = "hist"
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
        rule: Returns the shapes and types of a planned call's results, given all its arguments;
            None for that of torch's kernel.
        parameters: The names of the function's parameters, in order.
        examples: Returns small calls, each a tuple of positional and a dict of other arguments.
    """

    name: str
    label: str
    planner: Callable[..., Plan | None] = field(repr=False)
    images: tuple[str, ...]
    examples: Callable[[], Iterable[tuple[tuple[Any, ...], dict[str, Any]]]] = field(repr=False)
    rule: Rule | None = field(default=None, repr=False)
    parameters: tuple[str, ...] = field(
        init=False, default=Factory(lambda self: tuple(signature(self.planner).parameters), True)
    )
    _places: tuple[tuple[int, str], ...] = field(
        init=False, repr=False, default=Factory(lambda self: self._find_places(), True)
    )
    _outputs: tuple[int | None, ...] = field(
        init=False, repr=False, default=Factory(lambda self: self._find_outputs(), True)
    )
    _defaults: dict[str, Any] = field(
        init=False, repr=False, default=Factory(lambda self: self._find_defaults(), True)
    )
    _plans: dict[Any, Plan | None] = field(init=False, factory=dict, repr=False)
    _explainer: Explainer = field(
        init=False,
        repr=False,
        default=Factory(Explainer, True),
    )

    def _find_defaults(self) -> dict[str, Any]:
        given = signature(self.planner).parameters.values()
        return {each.name: each.default for each in given if each.default is not each.empty}

    def _find_places(self) -> tuple[tuple[int, str], ...]:
        return tuple((self.parameters.index(name), name) for name in self.images)

    def _find_outputs(self) -> tuple[int | None, ...]:
        """Return the place of the parameter that each result is written into."""
        places = {name: place for place, name in enumerate(self.parameters)}
        return tuple(map(places.get, find_row(self.name).outputs))

    def destination(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the argument that the result is to be written into, or None.

        Where there are several results, that is a tuple with an argument, or None, for each.
        """
        destinations = [self._argument(place, args, kwargs) for place in self._outputs]
        if len(destinations) == 1:
            return destinations[0]
        return None if all(each is None for each in destinations) else tuple(destinations)

    def _argument(self, place: int | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if place is None:
            return None
        return args[place] if place < len(args) else kwargs.get(self.parameters[place])

    def images_in(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the images among the arguments, also those in a list of images."""
        images: list[Any] = []
        for index, name in self._places:
            value = args[index] if index < len(args) else kwargs.get(name)
            if getattr(value, "ndim", 0):
                images.append(value)
            elif isinstance(value, (list, tuple)):
                images.extend(each for each in value if getattr(each, "ndim", 0))
        return images

    def replace_images(
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
        return self._plan_of(self._keyed(args, kwargs, missing_types(device)))

    def judge(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        device: Device | None,
        accepted: Exactness,
    ) -> tuple[Plan | None, str]:
        """Return how a call is computed or, beside None, why no kernel of this kind does it.

        Args:
            args: Positional arguments.
            kwargs: The others.
            device: Where it is computed.
            accepted: The loosest promise that the caller takes.
        """
        missing = missing_types(device)
        call = self._keyed(args, kwargs, missing)
        plan = self._plan_of(call)
        if plan is None:
            return None, self._explainer.why_not(call, missing)
        if not is_within(plan.promise, accepted):
            return None, self._explainer.why_only(plan.promise, call, accepted)
        return plan, ""

    def describe(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], missing: frozenset[str]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with an `Image` in the place of each image.

        Args:
            args: Positional arguments.
            kwargs: The others.
            missing: The element types that their device has not.
        """
        return self.replace_images(args, kwargs, lambda value: _image(value, missing))

    def _keyed(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], missing: frozenset[str]
    ) -> KeyedCall:
        positional, named = self.describe(args, kwargs, missing)
        try:
            self._place(positional, named, self.images_in(args, kwargs))
        except ValueError as error:  # what comes out depends on the order of OpenCV's operations
            return KeyedCall(positional, named, None, str(error))
        try:
            key = (*map(cache_key, positional), *map(cache_key, named.items()), environment())
            hash(key)
        except (TypeError, RecursionError):  # something that cannot be a key
            key = None
        return KeyedCall(positional, named, key)

    def _plan_of(self, call: KeyedCall) -> Plan | None:
        if call.misplaced:
            return None
        if call.key is None:
            return self.make_plan(call.positional, call.named)
        plan = self._plans.get(call.key, _UNKNOWN)
        if plan is _UNKNOWN:
            plan = self.make_plan(call.positional, call.named)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[call.key] = plan
        return plan  # type: ignore[return-value]

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

    def _checked(self, name: str, given: Any, images: Sequence[Any]) -> Place | tuple[Place, ...]:
        """Return what is known of a place for the result, or of those in a list.

        Raises:
            ValueError: It is for OpenCV to judge.
        """
        is_list = name == _LIST_OF_PLACES and isinstance(given, (list, tuple))
        least = 1 if name == _HISTOGRAM else _IMAGE_AXES[0]
        if not is_list and getattr(given, "ndim", 0) < least:
            axes = " of one axis" if getattr(given, "ndim", 0) else ""
            msg = f"{name} is of type {type(given).__name__}{axes}"
            raise ValueError(msg)
        try:
            if is_list:
                return places_of(given, images)
            place = place_of(given, images)
        except ValueError as error:
            msg = f"{name}: {error}"
            raise ValueError(msg) from None
        if place.is_operand and not find_row(self.name).in_place:
            msg = f"{name} is an operand"
            raise ValueError(msg)
        return place

    def make_plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan | None:
        """Return a new plan, or None, for arguments with an `Image` in the place of each image."""
        if self._explainer.why_no_plan(args, kwargs):
            return None
        plan = self.call_planner(args, kwargs)
        if plan is None:
            return None
        plan = evolve(plan, result=plan.result or self._result(args, kwargs))
        return in_parts(plan) if self.label == "triton" else plan

    def _result(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
        reference = find(self.name, "torch") if self.label != "torch" else self
        rule = (reference and reference.rule) or like_first
        named = self._defaults | dict(kwargs) | dict(zip(self.parameters, args, strict=False))
        return rule({name: named[name] for name in self.parameters if name in named})

    def call_planner(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Plan | None:
        """Return the planner's answer, which is None too where it raises."""
        try:
            with np.errstate(all="ignore"):  # of numbers that are too large, OpenCV says nothing
                return self.planner(*args, **kwargs)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            return None

    def why_not(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        device: Device | None = None,
        accepted: Exactness = "close",
    ) -> str:
        """Return why `judge` has no plan for a call: the argument, the type or the flag."""
        return self.judge(args, kwargs, device, accepted)[1]

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
        """Return why `supports` says no, or why `exactness` is not exact."""
        arrays = [
            name
            for index, name in self._places
            if isinstance(self._argument(index, args, kwargs), np.ndarray)
        ]
        if arrays or not self.images_in(args, kwargs):
            name = arrays[0] if arrays else self.images[0]
            return f"{name} is no tensor, and kernels of {self.label} read tensors only"
        return self.why_not(args, kwargs, _device, "exact")

    def exactness(self, _device: Device | None, /, *args: Any, **kwargs: Any) -> Any:
        """Return what is promised of a call."""
        plan = self.plan(args, kwargs, _device)
        return None if plan is None else plan.promise


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    if getattr(value, "ndim", 0):
        return replace(value)
    if isinstance(value, (list, tuple)):
        return rebuild_sequence(value, (_replaced(each, replace) for each in value))
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
    result: Rule = like_first,
) -> Callable[[Callable[..., Plan | None]], Operation]:
    """Make an `Operation` of the decorated planner, which has the name of OpenCV's function."""
    return lambda planner: Operation(planner.__name__, label, planner, images, examples, result)
