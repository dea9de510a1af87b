"""`Recording`: the calls of one frame while it runs."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from devicecore.migrate.recording.assume_bounds import assume_bounds
from devicecore.migrate.recording.buffer import Buffer
from devicecore.migrate.recording.current import RECORDING, current_recording
from devicecore.migrate.recording.lazy_array import LazyArray
from devicecore.migrate.recording.nodes import ArgRef, make_call, make_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Node, Primitive

    Array = np.ndarray[Any, Any]

MOST_CALLS: Final = 512
"""So many calls of one frame are recorded, and no more: a loop must not fill the memory."""
IMAGE_AXES: Final = (2, 3)
"""How many axes an image has."""


class Recording:
    """One frame while it runs.

    Args:
        fetch: Returns values of the frame as an array of numpy.
        keep: Returns the values that an array of the program has now.
        device: Where the frame is computed; None where it is only recorded.
        options: What the plan says of the frame.
        owner: Whose frame it is: calls of another migrator's plan are not recorded in it.
        count: As how many frames it counts, where no more than so many calls of one are recorded.

    Attributes:
        calls: How many calls were recorded.
        device: Where the frame is computed; None where it is only recorded.
        drawn: What OpenCV's own random numbers were, and what has drawn them.
        is_over: Whether it has ended, so that no more calls are recorded.
        options: What the plan says of the frame.
        owner: Whose frame it is.
    """

    def __init__(
        self,
        fetch: Callable[[Node], Array],
        keep: Callable[[Array], Node],
        device: Device | None = None,
        options: Options | None = None,
        *,
        owner: object = None,
        count: int = 1,
    ) -> None:
        self.calls: int = 0
        self.drawn: list[tuple[str, Any]] = []
        self.is_over: bool = False
        self.device: Device | None = device
        self.options: Options | None = options
        self.owner: object = owner
        self._most_calls = MOST_CALLS * count
        self._fetch = fetch
        self._keep = keep
        self._made: list[weakref.ref[Buffer]] = []

    def fetch(self, node: Node) -> Array:
        """Return values as an array of numpy, in memory of its own."""
        token = RECORDING.set(None)  # what computes them is no part of the frame
        try:
            return self._fetch(node)
        finally:
            RECORDING.reset(token)

    def keep(self, array: Array) -> Node | None:
        """Return the values of an array of the program; None if it keeps no more.

        Once it has ended, so has what it keeps arrays in.
        """
        if current_recording() is not self or self.is_full:
            return None
        self.calls += 1
        return self._keep(array)

    @property
    def is_full(self) -> bool:
        """Whether it has recorded as many calls as it may."""
        return self.calls >= self._most_calls

    def now(self) -> Recording:
        """Return the frame whose arrays are made of its own now, as a generator goes on with them.

        That is the one that is recorded now, if it is another one of the same kind.
        """
        found = current_recording()
        is_like = found is not None and found.owner is self.owner and found.device is self.device
        return found if found is not None and is_like else self

    def watch(self, memory: Buffer) -> None:
        """Remember that such an array was made; of a frame that has ended it is computed now."""
        if self.is_over:
            memory.on_host()
        else:
            self._made.append(weakref.ref(memory))

    def alive(self) -> list[Buffer]:
        """Return the memory of the arrays that are still in use."""
        found = (each() for each in self._made)
        return [memory for memory in found if memory is not None]

    def record(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
    ) -> Any:
        """Return what stands for the result of a call; None if that is not recorded.

        `why_not_recorded` says why.

        Args:
            primitive: What was called.
            args: The arguments.
            kwargs: More of them.
            options: What the plan says of such calls.
        """
        if self.is_full:
            return None
        place: Any = None
        apart = getattr(primitive, "apart", None) if "dst" in kwargs else None
        if apart is not None:
            kwargs, place = apart(kwargs)
            if place is not None and not may_write(place, [*args, *kwargs.values()]):
                return None
        inputs: list[Node] = []
        try:
            given = [
                self._slotted(each, inputs, primitive.takes(place))
                for place, each in enumerate(args)
            ]
            named = {
                name: self._slotted(each, inputs, primitive.takes(name))
                for name, each in kwargs.items()
            }
        except TypeError:
            return None
        row = getattr(primitive, "row", None)
        if row is not None and row.reads_bounds:
            inputs = [assume_bounds(node, node.host) for node in inputs]
        node = make_call(primitive, given, named, inputs, options) if inputs else None
        if node is None:
            return None
        self.calls += 1
        results = node.expr.results
        if len(results) == 1:
            found = LazyArray(Buffer(node, self))
            # Into an array of another shape or type OpenCV writes nothing.
            return place if place is not None and place.take_values_of(found) else found
        return tuple(
            LazyArray(Buffer(make_part(node, index), self)) for index in range(len(results))
        )

    def _slotted(self, value: Any, inputs: list[Node], is_image: bool) -> Any:
        """Return an argument with a `ArgRef` for each image, which is added to the inputs.

        Raises:
            TypeError: It is nothing that can be recorded.
        """
        own = type(value)
        if own is LazyArray and is_image and not value.is_on_host:
            inputs.append(value.node)
            return ArgRef(len(inputs) - 1)
        if own is LazyArray:
            value, own = value.values, np.ndarray
        if own is np.ndarray:
            if not is_image or value.ndim not in IMAGE_AXES:
                return value.copy()
            inputs.append(self._keep(value))
            return ArgRef(len(inputs) - 1)
        if own is tuple or own is list:
            return own([self._slotted(each, inputs, is_image) for each in value])
        if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
            raise TypeError(value)
        return value


def may_write(place: Any, others: Sequence[Any]) -> bool:
    """Return whether an array may become a call's result, whatever the order of its steps is."""
    if type(place) is not LazyArray or place.is_on_host or place.is_view:
        return False
    own = [each for each in others if type(each) is LazyArray]
    # Fractions may be rounded otherwise where the result is written into an image.
    return place.dtype.kind in "iu" and all(each is place or not each.shares(place) for each in own)
