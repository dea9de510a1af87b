"""Impulse responses of filters, and how far feedback amplifies rounding errors.

A stable filter forgets: what it gives is the sum of what it makes of each value of a signal, a
convolution, whose values can be computed all at once, while scipy needs each one for the next. It
is scipy that filters the impulse, in doubles, and not for each call anew where that takes little
memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from devicecore.migrate.strategies.tensors import scipy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# How many values the state of a filter may have, and its responses, all together.
_MOST_STATE: Final = 64
_MOST_VALUES: Final = 1 << 21
# Larger ones are made anew for each call, so that all that are kept have 16 MiB, or 32 if complex.
_MOST_KEPT: Final = 1 << 17
_FIRST_LENGTH: Final = 1 << 10
# How much of all that comes out may come in the last of so many parts of a response. It is cut off
# there: as it falls off from part to part, less than that would come later.
_FORGOTTEN: Final = 1e-17
_PARTS: Final = 8


@frozen
class Filter:
    """A filter as a cascade of sections.

    Attributes:
        sections: The weights of the inputs and of the outputs, as many of both; the first weight of
            an output is 1.
    """

    sections: tuple[tuple[tuple[complex, ...], tuple[complex, ...]], ...]

    @classmethod
    def of(cls, sections: Iterable[tuple[Any, Any]]) -> Filter:
        """Return the filter of scipy's arrays, each of which is divided by its first weight."""
        found = []
        for forward, back in sections:
            count = max(forward.size, back.size)
            with np.errstate(over="ignore"):
                pair = [np.pad(each / back[0], (0, count - each.size)) for each in (forward, back)]
            found.append((tuple(pair[0].tolist()), tuple(pair[1].tolist())))
        return cls(tuple(found))

    @property
    def order(self) -> int:
        """How many values the state has."""
        return sum(len(forward) - 1 for forward, _ in self.sections)

    @property
    def taps(self) -> Any:
        """The weights of a filter without feedback, or None."""
        (forward, back), *others = self.sections
        return None if others or any(back[1:]) else np.array(forward)


@frozen(eq=False)
class Section:
    """How large the values in a section can become.

    Attributes:
        weights: The sums of the absolute weights of its inputs and outputs, from each one on.
        places: Where its state is among those of all sections.
        sums: Of what comes out of it for an impulse, then for each value of the state being 1: the
            sum of the absolute values.
        peaks: The largest of them, for the state only.
    """

    weights: Any
    places: slice
    sums: Any
    peaks: Any


@frozen(eq=False)
class Response:
    """The impulse response of a filter.

    Attributes:
        impulse: For an impulse.
        outputs: For each value of the state being 1: shape ``(order, length)``.
        states: The state that an impulse leaves behind: the same shape.
        sections: How large the values are.
    """

    impulse: Any
    outputs: Any
    states: Any
    sections: tuple[Section, ...]

    @property
    def gain(self) -> float:
        """How much larger than its inputs an output can be that begins without a state."""
        return float(self.sections[-1].sums[0])

    def rounding(self, limits: Any, top: float, states: Any, found: float) -> tuple[float, float]:
        """Return how far rounding can take the output and the state from what they were without.

        Each step of the recursion rounds each value of the state, in proportion to the terms that
        it is the sum of, and the smallest numbers more than that. From there on that error is
        filtered as any other state is. This is what all of them come to if each one is rounded as
        far as can be, and always to the same side.

        Args:
            limits: What numpy knows of the type that is rounded to.
            top: The largest absolute input.
            states: The absolute values of the state that it begins with.
            found: The largest absolute output.
        """
        if top == 0 == states.max(initial=0):
            return 0.0, 0.0
        errors = np.zeros(len(states))
        before, error, of_state = top, 0.0, 0.0
        for section in self.sections:
            is_last = section is self.sections[-1]
            after = found if is_last else float(section.sums[0] * top + section.peaks @ states)
            ins, outs = section.weights
            rounded = float(limits.eps) * (ins * before + outs * after + float(limits.tiny))
            errors[section.places] = rounded[1:]
            incoming, error = error, float(section.sums[1:] @ errors + rounded[0])
            of_state = max(of_state, float(ins[0] * incoming + outs[0] * error + rounded[0]))
            before = after
        return error, of_state


def response_of(of: Filter) -> Response | None:
    """Return the response of a filter; None if it hardly forgets, or has a large state."""
    if of.taps is not None:
        return _finite(of)
    length = _length_of(of) if of.order <= _MOST_STATE else None
    if length is None:
        return None
    is_small = length * (1 + of.order) <= _MOST_KEPT
    return (_kept if is_small else _infinite)(of, length)


@lru_cache(maxsize=64)
def _length_of(of: Filter) -> int | None:
    """Return after how many values a filter has forgotten; None if that is too many."""
    length = _FIRST_LENGTH
    while length * (1 + of.order) <= _MOST_VALUES:
        # Each section: another one may hide in the end what one does not forget.
        if all(_is_over(rows) for rows, _ in _filtered(of, _impulses(of, length))):
            return length
        length *= 2
    return None


def _is_over(rows: Any) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        parts = np.abs(rows.reshape(len(rows), _PARTS, -1)).sum(-1)
        is_little = parts[:, -1] <= _FORGOTTEN * parts.sum(-1)
    return bool(is_little.all() and np.isfinite(parts).all())


def _impulses(of: Filter, length: int) -> Any:
    """Return an impulse, and for each value of the state a signal that is zero."""
    rows = np.zeros((1 + of.order, length))
    rows[0, 0] = 1
    return rows


def _filtered(of: Filter, rows: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what each section makes of some signals, and its state after them.

    The state before is zero for the first signal, and for the others one value of it is 1.
    """
    place = 1
    for forward, back in of.sections:
        state = np.zeros((len(rows), len(back) - 1))
        state[place : place + len(back) - 1] = np.eye(len(back) - 1)
        place += len(back) - 1
        rows, after = scipy("signal").lfilter(forward, back, rows, zi=state)
        yield rows, after


def _finite(of: Filter) -> Response:
    taps = of.taps
    ones = np.ones(len(taps) - 1)
    sums = np.r_[np.abs(taps).sum(), ones]
    section = Section(_weights(*of.sections[0]), slice(0, of.order), sums, ones)
    return Response(taps, None, None, (section,))


def _infinite(of: Filter, length: int) -> Response:
    rows = _impulses(of, length)
    found, states = [], []
    place = 0
    steps = list(_filtered(of, rows))
    for (forward, back), (after, _) in zip(of.sections, steps, strict=True):
        places = slice(place, place + len(back) - 1)
        sizes = np.abs(after)
        sums, peaks = sizes.sum(-1), sizes[1:].max(-1)
        found.append(Section(_weights(forward, back), places, sums, peaks))
        states.append(_states(forward, back, rows[0], after[0]))
        rows, place = after, places.stop
    return Response(rows[0], rows[1:], np.concatenate(states), tuple(found))


_kept: Final = lru_cache(maxsize=8)(_infinite)


def _weights(forward: Any, back: Any) -> Any:
    """Return the sum of the absolute weights from each one on."""
    return np.abs([forward, back])[:, ::-1].cumsum(-1)[:, ::-1]


def _states(forward: Any, back: Any, inputs: Any, outputs: Any) -> Any:
    """Return the states of a section after each of its inputs, beginning with zeros."""
    found = [np.zeros_like(outputs)]
    for ahead, behind in zip(forward[:0:-1], back[:0:-1], strict=True):
        later = np.r_[0, found[-1][:-1]]
        found.append(ahead * inputs - behind * outputs + later)
    return np.array(found[:0:-1])


@lru_cache(maxsize=8)
def state_after(of: Filter, length: int) -> Any:
    """Return what is left of each value of the state, being 1, after *length* zeros.

    Returns:
        Shape ``(order, order)``: the states before and after.
    """
    found = [after[1:] for _, after in _filtered(of, np.zeros((1 + of.order, length)))]
    return np.concatenate(found, -1)
