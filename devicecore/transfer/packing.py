"""Many small tensors in one copy: packed on the host, copied as a whole, taken apart there."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from devicecore.transfer.pinned_ring import CHUNK_BYTES, staging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.transfer.memory import Extent

# Above this, copying a tensor twice on the host costs more than a copy of its own.
SMALL_BYTES = 65536
# Where each tensor starts: kernels that read several elements at once may rely on it.
ALIGNMENT = 64


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
    if len(small) < fewest or _is_captured(device):
        return {}
    moved: dict[int, Any] = {}
    for chunk in _chunks(small):
        _move_chunk(tensors, chunk, device, moved)
    return moved


def _is_captured(device: Any) -> bool:
    """Return whether a graph is being captured, which would read the staging memory later."""
    if device.type != "cuda":
        return False
    return bool(sys.modules["torch"].cuda.is_current_stream_capturing())


def _chunks(extents: Sequence[Extent]) -> Iterator[dict[Any, list[int]]]:
    """Yield positions by element type, as many as fit into one chunk."""
    chunk: dict[Any, list[int]] = defaultdict(list)
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
    tensors: Sequence[Any], chunk: dict[Any, list[int]], device: Any, moved: dict[int, Any]
) -> None:
    layout = []
    used = 0
    with staging(device) as buffer:
        for dtype, positions in chunk.items():
            end, sizes = _pack(buffer, used, [tensors[each] for each in positions], dtype)
            layout.append((dtype, positions, sizes, used, end))
            used = end
        there = buffer[:used].to(device, non_blocking=device.type == "cuda")
    # Unlike `split`: views would count each other's changes for autograd.
    split = sys.modules["torch"].unsafe_split_with_sizes
    for dtype, positions, sizes, start, end in layout:
        pieces = split(there[start:end].view(dtype), sizes)
        if len(pieces) > len(positions):  # each is followed by what aligns the next
            pieces = pieces[::2]
        for position, piece in zip(positions, pieces, strict=True):
            tensor = tensors[position]
            moved[position] = piece if tensor.ndim == 1 else piece.view(tensor.shape)


def _pack(buffer: Any, start: int, tensors: Sequence[Any], dtype: Any) -> tuple[int, list[int]]:
    """Write *tensors* into *buffer* from *start*, each aligned.

    Returns:
        Where they end, and how many elements each has. Where some need filling, every second number
        is that of the elements between.
    """
    per_line = ALIGNMENT // dtype.itemsize
    pieces = [each if each.ndim == 1 else each.view(-1) for each in tensors]
    sizes = [each.numel() for each in pieces]
    if any(size % per_line for size in sizes):
        # What is in the buffer fills as well as anything.
        filling = buffer[:ALIGNMENT].view(dtype).clone()
        pieces = [part for each in pieces for part in (each, filling[: -each.numel() % per_line])]
        sizes = [each.numel() for each in pieces]
    end = start + sum(sizes) * dtype.itemsize
    sys.modules["torch"].cat(pieces, out=buffer[start:end].view(dtype))
    return end, sizes
