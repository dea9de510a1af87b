"""Many small tensors in one copy: packed on the host, copied as a whole, taken apart there."""

from __future__ import annotations

import sys
from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from devicecore.transfer.pinned_ring import CHUNK_BYTES, staging
from devicecore.transfer.simple_batch import element_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from devicecore.transfer.memory import Extent

# Above this, copying a tensor twice on the host costs more than a copy of its own.
SMALL_BYTES = 65536
# Where each tensor starts: kernels that read several elements at once may rely on it.
ALIGNMENT = 64
_ndim = attrgetter("ndim")
_shape = attrgetter("shape")


def move_packed(
    tensors: Sequence[Any], extents: Sequence[Extent], device: Any, fewest: int
) -> dict[int, Any]:
    """Move the small ones among some tensors of the host.

    The results share memory: each keeps up to `CHUNK_BYTES` alive. No two of them count as views of
    one tensor, so writing into one in place does not spoil what autograd has kept of another.

    Args:
        tensors: All tensors.
        extents: Where some of them lie.
        device: Where to, a ``torch.device``.
        fewest: With fewer small ones, nothing is moved.

    Returns:
        The moved ones by their position.
    """
    small = [each for each in extents if each[3] and each[4] and each[1] - each[0] <= SMALL_BYTES]
    moved: dict[int, Any] = {}
    if len(small) >= fewest and not _is_captured(device):
        for chunk in _chunks(small):
            _move_chunk(tensors, chunk, device, moved)
    return moved


def move_simple(tensors: Sequence[Any], device: Any, fewest: int) -> dict[int, Any]:
    """Move all tensors, if they are a simple batch; what `move_packed` says holds here too."""
    moved: dict[int, Any] = {}
    if len(tensors) >= fewest and not _is_captured(device):
        room = CHUNK_BYTES - ALIGNMENT * len(tensors)
        dtypes = element_types(tensors, SMALL_BYTES, room)
        if dtypes is not None:
            _move_chunk(tensors, _by_dtype(dtypes), device, moved)
    return moved


def _by_dtype(dtypes: Sequence[Any]) -> dict[Any, Sequence[int]]:
    """Return the positions of each element type."""
    if dtypes.count(dtypes[0]) == len(dtypes):
        return {dtypes[0]: range(len(dtypes))}
    positions: defaultdict[Any, list[int]] = defaultdict(list)
    for position, dtype in enumerate(dtypes):
        positions[dtype].append(position)
    return dict(positions)


def _is_captured(device: Any) -> bool:
    """Return whether a graph is being captured, which would read the staging memory later."""
    if device.type != "cuda":
        return False
    return bool(sys.modules["torch"].cuda.is_current_stream_capturing())


def _chunks(extents: Sequence[Extent]) -> Iterator[Mapping[Any, Sequence[int]]]:
    """Yield positions by element type, as many as fit into one chunk."""
    chunk: defaultdict[Any, list[int]] = defaultdict(list)
    room = CHUNK_BYTES
    for start, end, position, _, _, dtype in extents:
        needed = -(-(end - start) // ALIGNMENT) * ALIGNMENT
        if needed > room:
            yield chunk
            chunk, room = defaultdict(list), CHUNK_BYTES
        chunk[dtype].append(position)
        room -= needed
    yield chunk


def _move_chunk(
    tensors: Sequence[Any],
    chunk: Mapping[Any, Sequence[int]],
    device: Any,
    moved: dict[int, Any],
) -> None:
    layout = []
    used = 0
    with staging(device) as buffer:
        for dtype, positions in chunk.items():
            packed = [tensors[each] for each in positions]
            shapes = None if set(map(_ndim, packed)) == {1} else list(map(_shape, packed))
            flat = packed if shapes is None else [each.view(-1) for each in packed]
            end, sizes = _pack(buffer, used, flat, dtype)
            layout.append((dtype, positions, shapes, sizes, used, end))
            used = end
        there = buffer[:used].to(device, non_blocking=device.type == "cuda")
    # Unlike `split`: views would count each other's changes for autograd.
    split = sys.modules["torch"].unsafe_split_with_sizes
    for dtype, positions, shapes, sizes, start, end in layout:
        pieces = split(there[start:end].view(dtype), sizes)
        if len(pieces) > len(positions):  # each is followed by what aligns the next
            pieces = pieces[::2]
        if shapes is not None:
            pieces = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
        moved.update(zip(positions, pieces, strict=True))


def _pack(buffer: Any, start: int, tensors: Sequence[Any], dtype: Any) -> tuple[int, list[int]]:
    """Write flat *tensors* into *buffer* from *start*, each aligned.

    Returns:
        Where they end, and how many elements each has. Where some need filling, every second number
        is that of the elements between.
    """
    torch = sys.modules["torch"]
    per_line = ALIGNMENT // dtype.itemsize
    sizes = list(map(torch.Tensor.numel, tensors))
    if any(size % per_line for size in set(sizes)):
        # What is in the buffer fills as well as anything.
        filling = buffer[:ALIGNMENT].view(dtype).clone()
        fill = {size: filling[: -size % per_line] for size in set(sizes)}
        tensors = [
            part for each, size in zip(tensors, sizes, strict=True) for part in (each, fill[size])
        ]
        sizes = [part for size in sizes for part in (size, -size % per_line)]
    end = start + sum(sizes) * dtype.itemsize
    torch.cat(tensors, out=buffer[start:end].view(dtype))
    return end, sizes
