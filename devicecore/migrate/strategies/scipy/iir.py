"""IIR and FIR filters as FFT convolution with a truncated impulse response.

It is computed with doubles, whatever the type of the result is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from attrs import frozen

from devicecore.migrate.strategies.scipy.impulse_response import (
    Filter,
    Response,
    response_of,
    state_after,
)
from devicecore.migrate.strategies.signal_extension import EXTENSIONS
from devicecore.migrate.strategies.tensors import scipy, torch_type
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.migrate.strategies.torch_strategy import Call

# How many weights of inputs a section has, and as many of outputs.
_HALF: Final = 3
_NOT_FINITE: Final = "there are infinities or NaNs"
_UNIT: Final = float(np.finfo(np.float64).eps)
# How far rounding may take a result from scipy's at worst, as a part of the largest value.
_MOST_ROUNDING: Final = {"f": 1e-4, "d": 1e-9}
# A transform has four times as many values as the response, but no fewer than this.
_LEAST_LENGTH: Final = 1 << 13


def lfilter(call: Call, b: Any, a: Any, x: Any, axis: Any, zi: Any) -> Any:
    """Compute `scipy.signal.lfilter`."""
    weights = _weights(call, b, a)
    signal, number = _signal(call, x, axis)
    state = None if zi is None else call.given(zi)
    filtering = _Filtering.by(call, [weights], signal, state)
    if state is not None:
        wanted = [*signal.shape]
        wanted[number] = filtering.of.order
        call.need(wanted[number], "the state has no values")
        fits = state.ndim == signal.ndim and state.shape[number] == wanted[number]
        fits = fits and all(one in {1, two} for one, two in zip(state.shape, wanted, strict=True))
        call.need(fits, "the state has another shape")
        state = call.tensor(np.broadcast_to(state, wanted)).movedim(number, -1)
    values, after = filtering.once(call.tensor(signal).movedim(number, -1), state)
    found = to_array(values.movedim(-1, number))
    return found if zi is None else (found, to_array(after.movedim(-1, number)))


def sosfilt(call: Call, sos: Any, x: Any, axis: Any, zi: Any) -> Any:
    """Compute `scipy.signal.sosfilt`."""
    sections = _sections(call, sos)
    signal, number = _signal(call, x, axis)
    state = None if zi is None else call.given(zi)
    filtering = _Filtering.by(call, sections, signal, state)
    if state is not None:
        wanted = [len(sections), *signal.shape]
        wanted[number + 1] = 2
        call.need([*state.shape] == wanted, "the state has another shape")
        state = call.tensor(state).movedim((0, number + 1), (-2, -1)).flatten(-2)
    values, after = filtering.once(call.tensor(signal).movedim(number, -1), state)
    found = to_array(values.movedim(-1, number))
    if zi is None:
        return found
    after = after.unflatten(-1, (len(sections), 2))
    return found, to_array(after.movedim((-2, -1), (0, number + 1)))


def filtfilt(
    call: Call, b: Any, a: Any, x: Any, axis: Any, padtype: Any, padlen: Any, method: Any
) -> Any:
    """Compute `scipy.signal.filtfilt`, but for Gustafsson's method."""
    call.need(method == "pad", f"the method is {method!r}")
    weights = _weights(call, b, a)
    steady = _steady(call, scipy("signal").lfilter_zi, *weights)
    usual = 3 * max(each.size for each in weights)
    return _both_ways(call, [weights], steady, x, axis, padtype, padlen, usual)


def sosfiltfilt(call: Call, sos: Any, x: Any, axis: Any, padtype: Any, padlen: Any) -> Any:
    """Compute `scipy.signal.sosfiltfilt`."""
    sections = _sections(call, sos)
    given = np.concatenate(sections).reshape(-1, 2 * _HALF)
    steady = _steady(call, scipy("signal").sosfilt_zi, given)
    # Sections of the first order have no last weights.
    usual = 3 * (2 * len(given) + 1 - int((given[:, [2, 5]] == 0).sum(0).min()))
    return _both_ways(call, sections, steady, x, axis, padtype, padlen, usual)


def _weights(call: Call, b: Any, a: Any) -> tuple[Any, Any]:
    forward, back = (np.atleast_1d(call.given(each)) for each in (b, a))
    call.need(forward.ndim == back.ndim == 1 and forward.size and back.size, "there is no filter")
    call.need(back[0], "the filter is divided by 0")
    return forward, back


def _sections(call: Call, sos: Any) -> list[tuple[Any, Any]]:
    given = np.atleast_2d(call.given(sos))
    call.need(given.ndim == 2 and given.size, "there is no filter")
    call.need(given.shape[1] == 2 * _HALF, f"a section has {given.shape[1]} weights")
    call.need((given[:, _HALF] == 1).all(), "a section is divided by other than 1")
    return [(each[:_HALF], each[_HALF:]) for each in given]


def _signal(call: Call, x: Any, axis: Any) -> tuple[Any, int]:
    signal = call.given(x)
    call.need(signal.ndim and signal.size, "there is no signal")
    return signal, call.axis(axis, signal.ndim)


def _steady(call: Call, state_of: Any, *weights: Any) -> Any:
    """Return the state that inputs of 1 lead to, one value after the other."""
    try:
        return state_of(*weights).reshape(-1)
    except ValueError as error:
        call.refuse(f"the filter has no steady state: {error}")


def _both_ways(
    call: Call,
    sections: list[tuple[Any, Any]],
    steady: Any,
    x: Any,
    axis: Any,
    padtype: Any,
    padlen: Any,
    usual: int,
) -> Any:
    signal, number = _signal(call, x, axis)
    call.need(signal.dtype.kind != "b", "the signal is one of bools")
    call.need(padtype in {"odd", "even", "constant", None}, f"the padding is {padtype!r}")
    edge = usual if padlen is None else padlen
    if padtype is None:
        edge = 0
    is_length = isinstance(edge, int) and 0 <= edge < signal.shape[number]
    call.need(is_length, f"the padding has {edge} values")
    filtering = _Filtering.by(call, sections, signal, steady)
    values = call.tensor(signal).movedim(number, -1)
    if edge:  # in the signal's own type, in which integers may overflow
        values = EXTENSIONS[padtype](values, edge)
    return to_array(filtering.both_ways(values, steady, edge).movedim(-1, number))


@frozen
class _Filtering:
    """A filter that a call has, and the type of what it gives."""

    call: Call
    dtype: Any
    of: Filter
    response: Response

    @classmethod
    def by(cls, call: Call, sections: Iterable[tuple[Any, Any]], *arrays: Any) -> _Filtering:
        """Return the filter of scipy's arrays for a call, whose other arrays have a type too."""
        pairs = [*sections]
        given = [each for each in arrays if each is not None]
        dtype = np.result_type(*(each for pair in pairs for each in pair), *given)
        call.need(dtype.kind in "fc", f"values are {dtype}")
        typed = [tuple(each.astype(dtype) for each in pair) for pair in pairs]
        call.need(all(np.isfinite(each).all() for pair in typed for each in pair), _NOT_FINITE)
        call.promise("tolerance")
        of = Filter.of(typed)
        response = response_of(of)
        if response is None:
            call.refuse("the filter is unstable, or hardly forgets, or has a large state")
        return cls(call, dtype, of, response)

    def once(self, values: Any, state: Any) -> tuple[Any, Any]:
        """Filter values, of which the last axis is time, and return the state after them too."""
        values, state = (None if each is None else self._precise(each) for each in (values, state))
        sizes = np.zeros(self.of.order)
        if state is not None:
            self._size(state)
            sizes = state.abs().reshape(-1, self.of.order).amax(0).cpu().numpy()
        top = self._size(values)
        found, after = self._applied(values, state)
        size = self._size(found)
        error, of_state = self._rounding(values, top, sizes, size)
        found = self._near(found, error, size)
        if after is not None:
            after = self._near(after, of_state, max(size, self._size(after)))
        return found, after

    def both_ways(self, values: Any, steady: Any, edge: int) -> Any:
        """Filter values forward, then backward, and leave out *edge* of them at both ends.

        Each way begins with the state that its first value leads to if there is no other. What
        changes the output from there on are differences from that value, twice as large at most.

        Args:
            values: The last axis is time.
            steady: The state that inputs of 1 lead to.
            edge: How many.
        """
        values = self._precise(values)
        state = self.call.tensor(steady)
        top, error = self._size(values), 0.0
        for _ in range(2):
            found, _ = self._applied(values, values[..., :1] * state)
            size = self._size(found)
            own, _ = self._rounding(values, 3 * top, np.zeros(self.of.order), size)
            error = own + 3 * self.response.gain * error
            values, top = found.flip(-1), size
        values = values[..., edge : values.shape[-1] - edge]
        return self._near(values, error, self._size(values))

    def _precise(self, values: Any) -> Any:
        return values.to(torch.float64 if self.dtype.kind == "f" else torch.complex128)

    def _size(self, values: Any) -> float:
        """Return the largest absolute value."""
        ends = values.abs().max() if values.is_complex() else torch.stack(values.aminmax())
        size = float(ends.abs().max())
        self.call.need(math.isfinite(size), _NOT_FINITE)
        return size

    def _rounding(self, values: Any, top: float, states: Any, found: float) -> tuple[float, float]:
        """Return how far the results, and the state after them, may be from scipy's."""
        length = _length(values.shape[-1], len(self.response.impulse))
        energy = float(np.linalg.norm(self.response.impulse))
        transforms = _UNIT * math.log2(length) * math.sqrt(length) * top * energy
        limits = np.finfo(self.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            error, of_state = self.response.rounding(limits, top, states, found)
        return error + transforms, of_state

    def _near(self, values: Any, error: float, size: float) -> Any:
        """Return values in their type, unless they may not be those of scipy."""
        limits = np.finfo(self.dtype)
        # No value that scipy adds up is larger than the rounding, divided by its unit.
        largest = float(limits.eps) * float(limits.max)
        most = min(_MOST_ROUNDING[limits.dtype.char] * size, largest)
        self.call.need(error <= most, "rounding is enlarged too far")
        return values.to(torch_type(self.dtype))

    def _applied(self, values: Any, state: Any) -> tuple[Any, Any]:
        """Return what the filter gives, and if it begins with a state, that after it."""
        response, order, length = self.response, self.of.order, values.shape[-1]
        if state is None:
            return _convolved(values, self._on(response.impulse[:length])), None
        if response.outputs is None:  # what is left of the inputs is what would come out for zeros
            values = torch.nn.functional.pad(values, (0, order))
            found = _convolved(values, self._on(response.impulse))
            found[..., :order] += state
            return found[..., :length], found[..., length:]
        used = min(length, len(response.impulse))
        found = _convolved(values, self._on(response.impulse[:used]))
        found[..., :used] += state @ self._on(response.outputs[:, :used])
        after = values[..., -used:].flip(-1) @ self._on(response.states[:, :used].T)
        if used == length:
            after = after + state @ self._on(state_after(self.of, length))
        return found, after

    def _on(self, array: Any) -> Any:
        """Return an array of the response on the device."""
        return self._precise(self.call.tensor(array))


def _length(count: int, reach: int) -> int:
    """Return the length of the transforms for a signal and a response."""
    most = max(4 * reach, _LEAST_LENGTH)
    return int(scipy("fft").next_fast_len(min(count + reach - 1, most), real=True))


def _convolved(values: Any, weights: Any) -> Any:
    """Return as many values of a convolution as there are, by windows that overlap."""
    count, reach = values.shape[-1], weights.shape[-1]
    length = _length(count, reach)
    step = length - reach + 1
    windows = -(-count // step)
    padded = torch.nn.functional.pad(values, (reach - 1, windows * step - count))
    cut = padded.unfold(-1, length, step)
    forward, back = torch.fft.rfft, torch.fft.irfft
    if values.is_complex():
        forward, back = torch.fft.fft, torch.fft.ifft
    found = back(forward(cut).mul_(forward(weights, length)), length)
    return found[..., reach - 1 :].flatten(-2)[..., :count]
