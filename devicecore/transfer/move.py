"""`tensors_to_device`: moves every tensor in a structure, and keeps the structure."""

from __future__ import annotations

import sys
from operator import is_
from typing import TYPE_CHECKING, Any, get_args

from devicecore.errors import DeviceCoreError, NotLiveError, TransferError, UnknownDeviceError
from devicecore.frameworks.base.leaf import MoveFailedError
from devicecore.optional import installed
from devicecore.transfer.kinds import kind_of
from devicecore.transfer.left_behind import record_left_behind
from devicecore.transfer.pending_transfer import pending
from devicecore.transfer.rebuild import rebuild
from devicecore.transfer.request import Arrays, Request
from devicecore.transfer.scan import scan
from devicecore.transfer.target import Target, target_of

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.names import DeviceName
    from devicecore.transfer.request import Coalesce
    from devicecore.transfer.scan_result import ScanResult


def tensors_to_device(
    data: Any,
    device: str | DeviceName | Device | Any,
    *,
    non_blocking: bool = True,
    coalesce: Coalesce = "auto",
    arrays: Arrays = "leave",
    wait: bool = True,
) -> Any:
    """Return *data* with every tensor in it on *device*.

    The types of all containers are kept, and so are shared references, cycles and views; nothing of
    what is given is changed. What needs no move is not copied, and where nothing does, *data*
    itself comes back. Looked into are the builtin containers and their subclasses, mappings, data
    classes, attrs classes, models of pydantic, distributions of torch, numpy's arrays of objects,
    and what was registered with `register_container`, torch's pytree or optree. Tensors of torch,
    JAX, TensorFlow, Paddle, CuPy and ONNX Runtime are moved by their framework if it is loaded.
    Modules are refused, since moving one changes it. Other objects with a ``to(device)`` move a
    copy of themselves. Tensors in objects of other classes, and those that are keys, stay where
    they are: the ledger has an entry for each such class.

    Args:
        data: Any structure, of any depth.
        device: Whatever names a device for `device_scope`, and the same device: without an index,
            that of the scope around or the current GPU. A device that runs models only, such as
            ``"tensorrt:0"``, means the one that owns its memory.
        non_blocking: Whether copies to a GPU may be queued on its current stream. Page-locked
            tensors must not be changed before the copy is done.
        coalesce: Whether many small tensors of the host go to a GPU in one copy. They then share
            memory there: each keeps up to 4 MiB alive. ``"auto"`` does so for CUDA and XPU where
            there are at least four of at most 64 KiB.
        arrays: ``"leave"`` arrays of numpy as they are, or make ``"tensors"`` of torch of them.
        wait: Whether copies to the host are done when this returns. With False, a
            `PendingTransfer` is returned instead of the data.

    Returns:
        The same structure. Where torch is not installed, the device does not work, and there is no
        tensor in it anyway, *data*.

    Raises:
        InvalidDeviceNameError: *device* is no name of a device.
        TypeError: It is nothing that names one.
        NotLiveError: Its type does not work here, or not for the framework of a tensor.
        UnknownDeviceError: There is no such device.
        ValueError: *coalesce* or *arrays* is none of those.
        TransferError: Something cannot be moved; the error says where it is.
        FallbackForbiddenError: Something would be left behind, and the ledger forbids it.
        OutOfMemoryError: The device has too little memory left.

    Examples:
        >>> batch = {"x": [1, 2], "name": "first"}
        >>> tensors_to_device(batch, "cpu") is batch
        True
    """
    _check(arrays, coalesce)
    try:
        target = target_of(device)
    except (NotLiveError, UnknownDeviceError):
        # A program that has no framework goes on with what it has; no tensor is left behind.
        nowhere = Request(Target(str(device)), arrays=arrays)
        if installed("torch") or scan(data, nowhere).leaves:
            raise
        return data if wait else pending(data, data, ())
    request = Request(target, non_blocking, coalesce, arrays, wait)
    found = scan(data, request)
    if found.kept:
        record_left_behind(found, request, kind_of)
    moved = _move_leaves(found, request) if found.leaves else {}
    result = rebuild(found, moved) if moved else data
    if wait:
        return result
    return pending(result, data, _queued_on(found, request))


def _check(arrays: object, coalesce: object) -> None:
    if arrays not in get_args(Arrays):
        msg = f"arrays is 'leave' or 'tensors', not {arrays!r}"
        raise ValueError(msg)
    if coalesce not in (True, False, "auto"):
        msg = f"coalesce is True, False or 'auto', not {coalesce!r}"
        raise ValueError(msg)


def _move_leaves(found: ScanResult, request: Request) -> dict[int, Any]:
    """Return the new leaves by the id of the old ones."""
    moved: dict[int, Any] = {}
    for kind, leaves in found.leaves.items():
        values = list(leaves.values())
        try:
            results = kind.move(values, request)
        except MoveFailedError as failed:
            value, cause = values[failed.position], failed.cause
            explained = _explained(cause, found.path_to(value), value, request)
            raise explained from (None if explained is cause else cause)
        moved |= zip(leaves, results, strict=True)
        if any(map(is_, values, results)):  # some stay as they are
            moved = {key: new for key, new in moved.items() if new is not leaves.get(key)}
    return moved


def _explained(cause: Exception, path: str, value: Any, request: Request) -> Exception:
    """Return *cause* in our terms, with the path."""
    if isinstance(cause, TransferError):
        return TransferError(path + cause.path, cause.reason, cause.fix)
    device = request.target.device
    known = cause if isinstance(cause, DeviceCoreError) else device and device.device_error(cause)
    if known:
        known.add_note(f"when {path} was moved")
        return known
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    reason = f"a {kind} does not go to {request.target.name} ({type(cause).__name__}: {cause})"
    return TransferError(path, reason, "leave it out, or move it yourself")


def _queued_on(found: ScanResult, request: Request) -> set[Any]:
    """Return the devices of torch that copies may be queued on."""
    torch = sys.modules.get("torch")
    where = request.target.torch_device
    if torch is None or where is None:
        return set()
    if where.type != "cpu":
        return {where}
    return {
        value.device
        for leaves in found.leaves.values()
        for value in leaves.values()
        if isinstance(value, torch.Tensor)
    }
