"""Single tensors of torch copied to a device, queued only where that is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.transfer.target import QUEUEING

if TYPE_CHECKING:
    from devicecore.transfer.request import Request
    from devicecore.transfer.target import Target


def move_tensor(tensor: Any, request: Request) -> Any:
    """Return one tensor on the target, by torch's own ``to``.

    Raises:
        DeviceCoreError: torch has no tensors there.
    """
    device = torch_device_of(request.target)
    return tensor.to(device, non_blocking=_is_queued(tensor.device, device, request))


def torch_device_of(target: Target) -> Any:
    """Return the target as a ``torch.device``.

    Raises:
        DeviceCoreError: torch has no tensors there.
    """
    if target.torch_device is None:
        assert target.refusal is not None  # torch is loaded, since there is a tensor
        raise target.refusal
    return target.torch_device


def _is_queued(source: Any, device: Any, request: Request) -> bool:
    """Return whether a copy from *source* to *device* is only queued.

    To the host only where the caller asks for a handle: else it could be read before it is there.
    """
    if not request.non_blocking:
        return False
    if device.type == "cpu":
        return not request.wait and source.type in QUEUEING
    return device.type in QUEUEING and source.type in {"cpu", *QUEUEING}
