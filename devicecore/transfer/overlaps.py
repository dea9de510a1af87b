"""Tensors that lie over each other or over themselves: the memory below them is moved once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.transfer.torch_copy import move_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.transfer.memory import Extent
    from devicecore.transfer.request import Request

# A few columns of a long matrix: moving all that lies between them would cost more than it keeps.
_MOST_WASTE = 4


def move_overlapping(
    tensors: Sequence[Any], extents: Sequence[Extent], request: Request
) -> dict[int, Any]:
    """Move those that share memory, so that they share it there too.

    Args:
        tensors: All tensors.
        extents: Where some of them lie.
        request: What was asked for.

    Returns:
        The moved ones by their position; those that share nothing are not among them.
    """
    moved: dict[int, Any] = {}
    for group in _groups(sorted(extents)):
        if not _keeps(tensors, group):
            continue
        moved.update(_move_group(tensors, group, request))
    return moved


def _groups(extents: Sequence[Extent]) -> Iterator[Sequence[Extent]]:
    """Yield, from sorted extents, those that lie over each other, and each that has gaps."""
    first, end = 0, 0
    for number, extent in enumerate(extents):
        if extent[0] >= end:
            if number - first > 1 or (number and not extents[first][3]):
                yield extents[first:number]
            first = number
        end = max(end, extent[1])
    if first < len(extents) and (len(extents) - first > 1 or not extents[first][3]):
        yield extents[first:]


def _keeps(tensors: Sequence[Any], group: Sequence[Extent]) -> bool:
    """Return whether sharing is worth moving all the memory that *group* spans."""
    span = max(each[1] for each in group) - group[0][0]
    if len(group) == 1:
        return span < int(tensors[group[0][2]].nbytes)  # an expanded one
    return span <= _MOST_WASTE * sum(_distinct(tensors[each[2]]) for each in group)


def _distinct(tensor: Any) -> int:
    """Return how many bytes a tensor has, what is expanded counted once."""
    size = int(tensor.itemsize)
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        size *= length if stride else 1
    return size


def _move_group(
    tensors: Sequence[Any], group: Sequence[Extent], request: Request
) -> dict[int, Any]:
    torch = sys.modules["torch"]
    start, end = group[0][0], max(each[1] for each in group)
    if any((each[0] - start) % tensors[each[2]].itemsize for each in group):
        return {}
    first = tensors[group[0][2]]
    storage = first.untyped_storage()
    offset = start - storage.data_ptr()
    if offset + end - start > storage.nbytes():  # the same memory behind two storages
        return {}
    below = torch.empty(0, dtype=torch.uint8, device=first.device)
    below.set_(storage, offset, (end - start,), (1,))
    there = move_tensor(below, request)
    return {each[2]: _view(there, tensors[each[2]], each[0] - start) for each in group}


def _view(memory: Any, like: Any, offset: int) -> Any:
    """Return what lies at *offset* of *memory*, a tensor of bytes, with a tensor's shape."""
    size = like.itemsize
    typed = memory[: memory.numel() // size * size].view(like.dtype)
    first = typed.storage_offset() + offset // size
    return typed.as_strided(like.shape, like.stride(), first)
