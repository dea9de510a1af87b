"""Compares a device's result with the original's, within the promised tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from devicecore.migrate.calls.arrays import move_to_host

if TYPE_CHECKING:
    from devicecore.kernels import Exactness


def within_tolerance(promise: Exactness, found: Any, expected: Any) -> bool:
    """Return whether a result is as near to the original's as was promised."""
    import numpy as np

    from devicecore.cv.self_test import keeps_promise  # it imports torch

    if isinstance(expected, Mapping):
        return (
            isinstance(found, Mapping)
            and found.keys() == expected.keys()
            and all(within_tolerance(promise, found[key], value) for key, value in expected.items())
        )
    if isinstance(expected, (tuple, list)):
        return (
            isinstance(found, (tuple, list))
            and len(found) == len(expected)
            and all(within_tolerance(promise, *pair) for pair in zip(found, expected, strict=True))
        )
    found, expected = move_to_host(found), move_to_host(expected)
    one: Any = np.asarray(found)
    other: Any = np.asarray(expected)
    if other.dtype.kind == "c" and one.dtype == other.dtype:
        parts = (one.real, other.real), (one.imag, other.imag)
        return all(keeps_promise(promise, *pair) for pair in parts)
    return keeps_promise(promise, found, expected)
