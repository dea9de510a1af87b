"""Tensors of torch: which share a copy, which share memory, and which go alone."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import loaded
from devicecore.frameworks.base.leaf import LeafKind, MoveFailedError
from devicecore.transfer.memory import extents_of
from devicecore.transfer.overlaps import move_overlapping
from devicecore.transfer.packing import move_packed, move_simple
from devicecore.transfer.target import QUEUEING
from devicecore.transfer.torch_copy import queueing_sources, torch_device_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from devicecore.transfer.request import Request

# With fewer small tensors than this, packing them takes longer than it saves.
_FEWEST_PACKED = 4


class TorchTensors(LeafKind):
    """Tensors of torch, also parameters and those of subclasses."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere."""
        return bool(value.device != request.target.torch_device)

    def move(self, values: Sequence[Any], request: Request) -> list[Any]:
        """Return the tensors on the target; parameters become tensors, as in torch."""
        try:
            device = torch_device_of(request.target)
        except Exception as error:
            raise MoveFailedError(0, error) from error
        with without_modes():
            moved = _moved_together(values, request)
        if len(moved) < len(values):
            _move_others(values, moved, request)
        if device.type in QUEUEING and not request.non_blocking:
            getattr(sys.modules["torch"], device.type).current_stream(device).synchronize()
        return list(map(moved.__getitem__, range(len(values))))


def _moved_together(values: Sequence[Any], request: Request) -> dict[int, Any]:
    """Move those that share memory or a copy, and return them by their position.

    Where that fails, none of them: one by one they work all the same, or it shows which does not.
    """
    device, packs = request.target.torch_device, _packs(request)
    fewest = _FEWEST_PACKED if request.coalesce == "auto" else 1
    try:
        if packs and (moved := move_simple(values, device, fewest)):
            return moved
        extents = extents_of(values)
        moved = move_overlapping(values, extents, request)
        if packs:
            extents = [each for each in extents if each[2] not in moved] if moved else extents
            moved.update(move_packed(values, extents, device, fewest))
    except Exception:  # noqa: BLE001 - see above
        return {}
    return moved


def _move_others(values: Sequence[Any], moved: dict[int, Any], request: Request) -> None:
    """Move those that are not in *moved*, one after the other."""
    device = request.target.torch_device
    sources = queueing_sources(request)
    for position, value in enumerate(values):
        if position not in moved:
            try:
                queued = bool(sources) and value.device.type in sources
                moved[position] = value.to(device, non_blocking=queued)
            except Exception as error:
                raise MoveFailedError(position, error) from error


def has_modes() -> bool:
    """Return whether torch, if it is there, is in a mode such as a default device."""
    torch = loaded("torch")
    # Nothing public says so.
    return torch is not None and torch._C._len_torch_function_stack() > 0  # noqa: SLF001


def without_modes() -> AbstractContextManager[object]:
    """Return a block in which torch's modes, such as a default device, slow nothing down.

    Even ``tensor.device`` takes ten times as long under ``torch.device``, which changes nothing
    that is done here.
    """
    if not has_modes():
        return nullcontext()
    private = sys.modules["torch"]._C  # noqa: SLF001 - nothing public does it
    made: AbstractContextManager[object] = private.DisableTorchFunction()
    return made


def _packs(request: Request) -> bool:
    if request.coalesce == "auto":
        return request.target.queues
    return request.coalesce and not request.target.is_host
