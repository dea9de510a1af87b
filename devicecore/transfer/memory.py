"""The memory that tensors of torch lie in, for those that are nothing but memory and a shape."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_REAL = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
_COMPLEX = ("complex32", "complex64", "complex128")


# Where a tensor lies: the address of its first byte, that after its last one, which tensor it is,
# whether its elements fill the memory in order, whether that is the host's, and its element type.
# A plain tuple, since there are as many of them as there are tensors.
Extent = tuple[int, int, int, bool, bool, Any]


def extents_of(tensors: Sequence[Any]) -> list[Extent]:
    """Return where the plain ones among *tensors* lie.

    Left out are empty ones, those that autograd watches, subclasses, and tensors whose bytes are
    not their values: sparse, quantized, or lazily negated ones.
    """
    torch = sys.modules["torch"]
    plain, strided, dtypes = torch.Tensor, torch.strided, plain_dtypes()
    found: list[Extent] = []
    for position, tensor in enumerate(tensors):
        if type(tensor) is not plain or tensor.requires_grad or tensor.layout is not strided:
            continue
        dtype = tensor.dtype
        is_complex = dtypes.get(dtype)
        if is_complex is None or tensor.is_neg() or (is_complex and tensor.is_conj()):
            continue
        on_host = tensor.is_cpu
        size = tensor.nbytes
        if size and (on_host or tensor.is_cuda):
            start, contiguous = tensor.data_ptr(), tensor.is_contiguous()
            end = start + (size if contiguous else _span(tensor))
            found.append((start, end, position, contiguous, on_host, dtype))
    return found


@cache
def plain_dtypes() -> Mapping[Any, bool]:
    """Return the element types of tensors whose bytes are their values, and which are complex."""
    torch = sys.modules["torch"]
    names = [(name, False) for name in _REAL] + [(name, True) for name in _COMPLEX]
    return {getattr(torch, name): flag for name, flag in names if hasattr(torch, name)}


def _span(tensor: Any) -> int:
    last = sum(
        (length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return int((last + 1) * tensor.itemsize)
