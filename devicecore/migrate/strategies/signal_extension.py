"""Extends signals at both ends, and adds overlapping segments."""

from __future__ import annotations

from typing import Any, Final

import torch


def _even(values: Any, count: int) -> Any:
    ends = values[..., 1 : count + 1].flip(-1), values[..., -(count + 1) : -1].flip(-1)
    return torch.cat((ends[0], values, ends[1]), -1)


def _odd(values: Any, count: int) -> Any:
    ends = values[..., 1 : count + 1].flip(-1), values[..., -(count + 1) : -1].flip(-1)
    first, last = values[..., :1], values[..., -1:]
    return torch.cat((2 * first - ends[0], values, 2 * last - ends[1]), -1)


def _constant(values: Any, count: int) -> Any:
    wide = (*values.shape[:-1], count)
    return torch.cat((values[..., :1].expand(wide), values, values[..., -1:].expand(wide)), -1)


def _zeros(values: Any, count: int) -> Any:
    return torch.nn.functional.pad(values, (count, count))


EXTENSIONS: Final[dict[Any, Any]] = {
    "even": _even, "odd": _odd, "constant": _constant, "zeros": _zeros, None: None,
}  # fmt: skip
"""By scipy's names: what continues a signal by a number of values at both ends."""


# Of the largest sum of squared windows: where less is left, rounding is most of what it divides.
_LEAST: Final = 1e-4


def is_reached(norm: Any) -> Any:
    """Return whether windows reach all of a signal, or nothing of it, but not hardly anything.

    Args:
        norm: The sums of the squared windows, one for each value.
    """
    return ((norm == 0) | (norm > _LEAST * norm.max())).all()


def overlapped(pieces: Any, step: int) -> Any:
    """Return the sum of pieces, each of which begins a step behind the one before.

    Args:
        pieces: Shape ``(…, length, number)``.
        step: How many values they are apart.
    """
    if pieces.is_complex():
        return torch.complex(*(overlapped(each, step) for each in (pieces.real, pieces.imag)))
    length = pieces.shape[-2] + (pieces.shape[-1] - 1) * step
    flat = pieces.reshape(-1, *pieces.shape[-2:])
    folded = torch.nn.functional.fold(flat, (1, length), (1, pieces.shape[-2]), stride=(1, step))
    return folded.reshape(*pieces.shape[:-2], length)
