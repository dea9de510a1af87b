"""Resizes images as scikit-image does.

What it does along an axis, a blur and an interpolation, is the same for all lines along it. So it
is one matrix for each axis: what scipy, which scikit-image asks, makes of the lines of an identity.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from devicecore.migrate.strategies.tensors import scipy
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from devicecore.migrate.strategies.torch_strategy import Call

# Modes that know no value from outside, by numpy's names and scipy's.
_MODES: Final = {"edge": "nearest", "symmetric": "reflect", "reflect": "mirror"}
_LONGEST: Final = 4096


def resize(
    call: Call,
    image: Any,
    output_shape: Any,
    order: Any,
    mode: Any,
    clip: Any,
    preserve_range: Any,
    anti_aliasing: Any,
    anti_aliasing_sigma: Any,
) -> Any:
    """Compute `skimage.transform.resize`."""
    given = call.given(image)
    call.need(given.size and given.ndim > 1 and given.dtype.kind in "uif", "it is no image")
    call.need(mode in _MODES, f"the mode is {mode!r}")
    call.need(order is None or order in {1, 2, 3}, f"the order is {order!r}")
    # Splines that are continued so are not quite separable in scipy.
    call.need(mode != "symmetric" or order in {None, 1}, f"the order is {order!r}")
    call.need(anti_aliasing_sigma is None, "the blur is given")
    shape = _shape(call, given, output_shape)
    floats = _as_floats(call, given, bool(preserve_range))
    values = call.tensor(floats)
    call.promise_products(values)
    call.need(values.isfinite().all(), "there are infinities or NaNs")
    is_smaller = any(new < old for new, old in zip(shape, given.shape, strict=True))
    is_blurred = is_smaller if anti_aliasing is None else bool(anti_aliasing)
    found = values
    for axis, (old, new) in enumerate(zip(given.shape, shape, strict=True)):
        if old != new:
            matrix = _matrix(old, new, order or 1, _MODES[mode], is_blurred)
            weights = call.tensor(matrix.astype(floats.dtype))
            found = (found.movedim(axis, -1) @ weights).movedim(-1, axis)
    if clip:
        found = found.clamp(values.min(), values.max())
    return to_array(found)


def _shape(call: Call, given: Any, output_shape: Any) -> tuple[int, ...]:
    lengths = np.atleast_1d(output_shape)
    call.need(lengths.ndim == 1 and lengths.dtype.kind in "iuf", f"the shape is {output_shape!r}")
    shape = tuple(int(each) for each in lengths)
    call.need((lengths == shape).all() and min(shape) > 0, f"the shape is {output_shape!r}")
    shape += given.shape[-1:] if len(shape) == given.ndim - 1 else ()
    call.need(len(shape) == given.ndim, "the shape has other axes")
    call.need(max(*shape, *given.shape) <= _LONGEST, "an axis is too long")
    return shape


def _as_floats(call: Call, given: Any, preserve_range: bool) -> Any:
    if given.dtype.kind == "f":
        return given
    call.need(preserve_range or given.dtype.char in "bBhi", f"values are {given.dtype}")
    return (
        given.astype(np.float64)
        if preserve_range
        else import_module("skimage.util").img_as_float(given)
    )


@lru_cache(maxsize=32)
def _matrix(old: int, new: int, order: int, mode: str, is_blurred: bool) -> Any:
    """Return what makes *new* values of each line of *old* ones, which it is on the right of."""
    ndimage = scipy("ndimage")
    lines = np.eye(old)
    sigma = max(0.0, (old / new - 1) / 2) if is_blurred else 0.0
    if sigma:
        lines = ndimage.gaussian_filter1d(lines, sigma, axis=1, mode=mode)
    factors = 1, 1 / (old / new)
    return ndimage.zoom(lines, factors, order=order, mode=mode, grid_mode=True)
