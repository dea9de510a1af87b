"""Single tensors of torch copied to a device, queued only where that is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.transfer.target import QUEUEING

if TYPE_CHECKING:
    from devicecore.transfer.request import Request
    from devicecore.transfer.target import Target

_NOWHERE: frozenset[str] = frozenset()
_FROM_ANYWHERE = QUEUEING | {"cpu"}


def move_tensor(tensor: Any, request: Request) -> Any:
    """Return one tensor on the target, by torch's own ``to``.

    Raises:
        DeviceCoreError: torch has no tensors there.
    """
    device = torch_device_of(request.target)
    return tensor.to(device, non_blocking=tensor.device.type in queueing_sources(request))


def queueing_sources(request: Request) -> frozenset[str]:
    """Return the kinds of devices from which copies to the target are only queued.

    To the host only where the caller asks for a handle: else it could be read before it is there.
    """
    kind = torch_device_of(request.target).type
    if not request.non_blocking:
        return _NOWHERE
    if kind == "cpu":
        return _NOWHERE if request.wait else QUEUEING
    return _FROM_ANYWHERE if kind in QUEUEING else _NOWHERE


def torch_device_of(target: Target) -> Any:
    """Return the target as a ``torch.device``.

    Raises:
        DeviceCoreError: torch has no tensors there.
    """
    if target.torch_device is None:
        assert target.refusal is not None  # torch is loaded, since there is a tensor
        raise target.refusal
    return target.torch_device
