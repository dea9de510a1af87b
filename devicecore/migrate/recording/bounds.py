"""Bounds of the values of an expression: within them arithmetic neither overflows nor warns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.migrate.recording.nodes import Expr

    Range = tuple[float, float]

LARGEST: Final = 1e30
"""Of values up to this, numpy's arithmetic with single precision has no infinite ones."""
ANY: Final = (-float("inf"), float("inf"))
"""The range of values of which nothing is known."""

# By how much OpenCV's functions make values larger, beside the numbers that they are given: sums
# of a window, and what resampling overshoots.
_MOST_GAIN = 1e4


def find_range(value: Any) -> Range:
    """Return between which numbers the values of an expression, or of a constant, lie."""
    if not hasattr(value, "results"):
        return _of_constant(value)
    expr: Expr = value
    if expr.range is None:
        expr.range = _of_expr(expr)
    return expr.range


def is_known(found: Range) -> bool:
    """Return whether a range has an end on both sides."""
    return -LARGEST < found[0] <= found[1] < LARGEST


def _of_constant(value: Any) -> Range:
    found = np.asarray(value)
    if found.dtype.kind not in "biuf" or not found.size:
        return ANY
    return float(found.min()), float(found.max())


def _of_expr(expr: Expr) -> Range:
    own = getattr(expr.primitive, "range", None)
    found = _of_type(expr.dtype)
    if own is not None:
        rule: Range = own(*expr.filled(expr.inputs))
        found = rule if is_known(rule) else found
    elif expr.dtype.kind == "f":
        rule = _of_call(expr)
        found = rule if is_known(rule) else ANY
    return found


def _of_type(dtype: np.dtype[Any]) -> Range:
    if dtype.kind == "b":
        return 0.0, 1.0
    if dtype.kind not in "iu":
        return ANY
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)


def _of_call(expr: Expr) -> Range:
    """Return what a function of OpenCV makes of images and numbers at most."""
    row = getattr(expr.primitive, "row", None)
    if expr.primitive is None or not (row is None or row.bounded):
        return ANY
    size = _MOST_GAIN
    for given in expr.inputs:
        size *= max(1.0, *map(abs, find_range(given)))
    numbers = _numbers((*expr.args, *expr.kwargs.values()))
    size *= 1 + sum(float(np.abs(each).sum()) for each in numbers)
    return -size, size


def _numbers(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _numbers(value)
        elif isinstance(value, (int, float, np.generic, np.ndarray)):
            yield np.asarray(value, np.float64)
