"""The batch most often given: small tensors of the host that share nothing, told by few calls."""

from __future__ import annotations

import sys
from itertools import islice
from operator import add, attrgetter, le
from typing import TYPE_CHECKING, Any

from devicecore.transfer.memory import plain_dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

_requires_grad = attrgetter("requires_grad")
_is_cpu = attrgetter("is_cpu")
_dtype = attrgetter("dtype")
_nbytes = attrgetter("nbytes")


def element_types(tensors: Sequence[Any], largest: int, room: int) -> list[Any] | None:
    """Return the element type of each, if all of *tensors* can be packed as they are.

    `extents_of` asks each tensor by itself, and tells every batch apart. With thousands of tensors
    its questions take longer than their copy; here they are asked without a loop in Python.

    Args:
        tensors: Tensors of torch.
        largest: How many bytes one of them may have.
        room: How many bytes all of them may have.

    Returns:
        The types, or None where a tensor is not plain, contiguous, small and the only one in its
        memory.
    """
    plain = sys.modules["torch"].Tensor
    if set(map(type, tensors)) != {plain} or any(map(_requires_grad, tensors)):
        return None
    dtypes = list(map(_dtype, tensors))
    if not all(map(_is_cpu, tensors)) or not set(dtypes) <= plain_dtypes().keys():
        return None
    try:
        sizes = list(map(_nbytes, tensors))
        starts = list(map(plain.data_ptr, tensors))
        are_dense = all(map(plain.is_contiguous, tensors))
    except RuntimeError:  # a sparse one has no memory of its own
        return None
    if not are_dense or not all(sizes) or max(sizes) > largest or sum(sizes) > room:
        return None
    ends = sorted(map(add, starts, sizes))
    starts.sort()
    # None lies over another one if each ends before the next one starts.
    return dtypes if all(map(le, ends, islice(starts, 1, None))) else None
