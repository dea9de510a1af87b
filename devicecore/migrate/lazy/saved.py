"""What a frame may change before it turns out that it has to run anew, put back then."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from devicecore.migrate.values import Contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Objects are looked into so deep: a pipeline has steps, and those have their own steps.
_MOST_DEEP = 5
_CONTAINERS = (list, tuple)


class Saved:
    """The arrays that a frame is given, and the random numbers that it would draw next.

    Random numbers are Python's, numpy's, torch's on the host, and those of generators that the
    objects among the arguments have, as the transforms of albumentations do.

    Args:
        args: The arguments of the frame.
        kwargs: More of them.
    """

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._contents = Contents(args, kwargs)
        self._undo = list(_states([*args, *kwargs.values()]))

    def put_back(self) -> None:
        """Undo what became of them since."""
        self._contents.put_back()
        for undo, state in self._undo:
            undo(state)


def _states(values: Sequence[Any]) -> Iterator[tuple[Callable[[Any], Any], Any]]:
    """Yield what puts the state of each generator back, and the state."""
    yield random.setstate, random.getstate()
    numpy: Any = sys.modules.get("numpy")
    own: tuple[type, ...] = (random.Random,)
    if numpy is not None:
        yield numpy.random.set_state, numpy.random.get_state()
        own = (*own, numpy.random.Generator, numpy.random.RandomState)
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        yield torch.set_rng_state, torch.get_rng_state()
    for found in _instances(values, own):
        if isinstance(found, random.Random):
            yield found.setstate, found.getstate()
        elif isinstance(found, numpy.random.RandomState):
            yield found.set_state, found.get_state()
        else:
            yield _setter(found.bit_generator), found.bit_generator.state


def _setter(generator: Any) -> Callable[[Any], None]:
    def put_back(state: Any) -> None:
        generator.state = state

    return put_back


def _instances(values: Sequence[Any], wanted: tuple[type, ...]) -> Iterator[Any]:
    """Yield objects of some classes among values, and in the objects and containers there."""
    seen: set[int] = set()
    level: list[Any] = list(values)
    for _ in range(_MOST_DEEP):
        below: list[Any] = []
        for value in level:
            if id(value) in seen or type(value) in _PLAIN:
                continue
            seen.add(id(value))
            if isinstance(value, wanted):
                yield value
            elif type(value) in _CONTAINERS:
                below += value
            elif type(value) is dict:
                below += value.values()
            elif type(value).__module__ not in _FOREIGN:
                below += getattr(value, "__dict__", {}).values()
        level = below


_PLAIN = frozenset({int, float, bool, str, bytes, type(None), type})
# Of these, no object has generators, and some have much else.
_FOREIGN = frozenset({"numpy", "torch", "builtins"})
