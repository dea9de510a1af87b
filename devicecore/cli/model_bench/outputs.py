"""How far the outputs of a device are from those of the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_uint8
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TID253 - only the children that measure import this module

from devicecore.cli.model_bench.values import Difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Arrays = dict[str, Any]

_BFLOAT16 = "tensor(bfloat16)"


def as_arrays(outputs: Mapping[str, Any]) -> Arrays:
    """Return *outputs* as arrays of numbers, or of texts that numpy can save.

    Those inside of sequences and maps get names of their own, such as ``"probabilities[0][2]"``.
    """
    found: Arrays = {}
    for name, value in outputs.items():
        found.update(_leaves(name, value))
    return found


def has_nan(arrays: Iterable[Any]) -> bool:
    """Return whether there are NaN among the numbers of *arrays*."""
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in arrays)


def difference(expected: Arrays, given: Arrays) -> Difference:
    """Return how far *given* is from *expected*, the CPU's."""
    if list(expected) != list(given):
        return Difference(None, None, "other outputs")
    return worst(_of_one(expected[name], given[name]) for name in expected)


def worst(differences: Iterable[Difference]) -> Difference:
    """Return the largest numbers of *differences*, and the first fault."""
    found = list(differences)
    if fault := next((each.fault for each in found if each.fault), ""):
        return Difference(None, None, fault)
    return Difference(
        max((each.absolute or 0.0 for each in found), default=0.0),
        max((each.relative or 0.0 for each in found), default=0.0),
    )


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(f"{name}[{key}]", each)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(f"{name}[{index}]", each)
    elif hasattr(value, "data_ptr"):
        yield name, _without_numpy(value)
    else:
        yield name, _that_numpy_saves(np.asarray(value))


def _that_numpy_saves(array: Any) -> Any:
    if array.dtype.kind in "OSU":
        return array.astype(str)
    return array.astype(np.float32) if array.dtype.kind == "V" else array  # one of ml_dtypes


def _without_numpy(value: Any) -> Any:
    """Return what numpy has no element type for: bfloat16 as numbers, anything else as it lies."""
    size = value.tensor_size_in_bytes()
    lies = np.frombuffer((c_uint8 * size).from_address(value.data_ptr()), np.uint8)
    if value.data_type() != _BFLOAT16:
        return lies.astype(str)
    bits = lies.view(np.uint16).astype(np.uint32)
    return (bits << 16).view(np.float32).reshape(value.shape())


def _of_one(expected: Any, given: Any) -> Difference:
    if expected.shape != given.shape:
        return Difference(None, None, "another shape")
    if "U" in (expected.dtype.kind, given.dtype.kind):
        return Difference() if np.array_equal(expected, given) else _fault("another text")
    exact, seen = expected.astype(np.float64), given.astype(np.float64)
    if not np.array_equal(np.isnan(exact), np.isnan(seen)):
        more = np.isnan(seen) & ~np.isnan(exact)
        return _fault("NaN" if more.any() else "a number for the CPU's NaN")
    same = (exact == seen) | np.isnan(exact)
    with np.errstate(invalid="ignore"):  # of two infinities, which are the same
        absolute = float(np.where(same, 0.0, np.abs(exact - seen)).max(initial=0.0))
    if not np.isfinite(absolute):
        return _fault("infinite")
    largest = float(np.abs(exact[np.isfinite(exact)]).max(initial=0.0))
    if absolute and not largest:
        return _fault(f"{absolute:.2g} for zeros")
    return Difference(absolute, absolute / largest if absolute else 0.0)


def _fault(words: str) -> Difference:
    return Difference(None, None, words)
