"""What entering a scope finds, kept for as long as looking again would find the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.device import Device
from devicecore.runtime import default_runtime
from devicecore.scope.adapters import Placement, placement
from devicecore.scope.parse_device import find, gpu_of, is_class, of_type
from devicecore.scope.scope_stack import OUTSIDE

if TYPE_CHECKING:
    from devicecore.frameworks.base.adapter import Adapter
    from devicecore.names import DeviceName
    from devicecore.runtime import Runtime
    from devicecore.scope.scope_stack import Frame

# What was found for a name, for every scope that is made anew. Emptied when it holds so many.
_known: dict[tuple[Runtime, DeviceName, frozenset[str] | None], CachedPlacement] = {}
_MOST = 256


@frozen(eq=False)
class CachedPlacement(Placement):
    """A placement, and what it depends on.

    Attributes:
        is_kept: Whether another entry can use it.
        is_fixed: Whether it stays true until the device is gone.
        is_fixed_outside: The same, outside of all scopes.
        absent: The type whose index was absent, so that the scopes around have a say in it.
        gpu: The GPU that was current then, None where the device is on none.
        devices: All that there were, where the name is that of a class.
        picks: What the registry had picked by then, where the name is that of a class.
    """

    is_kept: bool = True
    is_fixed: bool = True
    is_fixed_outside: bool = True
    absent: str | None = None
    gpu: tuple[str, int | None] | None = None
    devices: tuple[Device, ...] | None = None
    picks: Any = None


def look(
    wanted: DeviceName | Device,
    frameworks: frozenset[str] | None,
    around: Frame,
    now: tuple[Adapter, ...],
) -> CachedPlacement:
    """Return the device that *wanted* means inside *around*, and what it is to the frameworks.

    Raises:
        DeviceGoneError: It was closed, removed or lost.
        NotLiveError: Its type does not work here, or not for a framework that was named.
        UnknownDeviceError: There is no such device.
    """
    if isinstance(wanted, Device):
        found = placement(find(wanted, around, now), frameworks, now)
        return _found(found, is_kept=wanted.is_local)
    key = (default_runtime(), wanted, frameworks)
    known = _known.get(key)
    if known is not None and is_still_true(known, around, now):
        return known
    found = _depending(wanted, placement(find(wanted, around, now), frameworks, now), around)
    if found.is_kept:
        if len(_known) >= _MOST:
            _known.clear()
        _known[key] = found
    return found


def is_still_true(found: CachedPlacement, around: Frame, now: tuple[Adapter, ...]) -> bool:
    """Return whether looking again would find the same."""
    device = found.device
    if found.adapters is not now or device.gone:
        return False
    if found.refused and found.modules != len(sys.modules):  # a plug-in may bring what was refused
        return False
    if (
        found.absent
        and around is not OUTSIDE
        and of_type(found.absent, around) not in {None, device}
    ):
        return False
    if found.gpu is not None and gpu_of(device, now) != found.gpu:
        return False
    return found.devices is None or (found.devices is _devices() and found.picks is _picks())


def _depending(wanted: DeviceName, placed: Placement, around: Frame) -> CachedPlacement:
    """Return what is kept of *placed*, with all that *wanted* depends on."""
    kind = wanted.device_type or ""
    absent = kind if wanted.index is None else None
    if absent and of_type(absent, around) is not None:
        return _found(placed, is_kept=False)
    gpu = gpu_of(placed.device, placed.adapters) if absent else None
    if is_class(kind):
        return _found(placed, absent=absent, gpu=gpu, devices=_devices(), picks=_picks())
    return _found(placed, absent=absent, gpu=gpu)


def _found(
    placed: Placement,
    *,
    is_kept: bool = True,
    absent: str | None = None,
    gpu: tuple[str, int | None] | None = None,
    devices: tuple[Device, ...] | None = None,
    picks: Any = None,
) -> CachedPlacement:
    is_fixed_outside = not placed.refused and gpu is None and devices is None
    return CachedPlacement(
        placed.device,
        placed.adapters,
        placed.places,
        placed.refused,
        placed.modules,
        is_kept,
        is_fixed_outside and absent is None,
        is_fixed_outside,
        absent,
        gpu,
        devices,
        picks,
    )


def _devices() -> tuple[Device, ...]:
    return default_runtime().manager.list_devices()


def _picks() -> Any:
    """Return what is another object as soon as a factory came, went or was doubted."""
    return default_runtime().registry._picks  # noqa: SLF001 - it counts its changes by nothing else
