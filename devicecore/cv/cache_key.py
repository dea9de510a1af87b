"""Cache key: calls with equal keys share one plan."""

from __future__ import annotations

from typing import Any

import numpy as np

# What a larger array holds is no part of a kind of call.
_LARGEST = 1 << 16
_SIMPLE = frozenset({int, bool, str, type(None)})


def cache_key(value: Any) -> Any:
    """Return *value* as part of a key; 1, 1.0, True, 0.0 and -0.0 are all different ones.

    So are a number of numpy's and an array that holds it: OpenCV takes only the first for a number.

    Raises:
        TypeError: It cannot be one.
    """
    own = type(value)
    if own in _SIMPLE:
        return own, value
    if own is float:
        return own, value.hex()
    if own is tuple or own is list:
        return (own, *map(cache_key, value))
    if isinstance(value, (np.ndarray, np.generic)):
        if value.nbytes > _LARGEST:
            raise TypeError
        return own, value.shape, value.dtype, value.tobytes()
    if hasattr(value, "ndim"):  # what it holds is unknown here
        raise TypeError
    return own, value
