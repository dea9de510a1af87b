"""Find the accelerators that really work, say why the others do not, and run kernels on them.

Names are imported when they are first used, so that importing devicecore costs next to nothing and
touches no framework, file or variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devicecore.device import Device as Device
    from devicecore.device import DeviceAttributes as DeviceAttributes
    from devicecore.device import DeviceLocality as DeviceLocality
    from devicecore.device_factory import Candidate as Candidate
    from devicecore.device_factory import DeviceFactory as DeviceFactory
    from devicecore.device_factory import DeviceOptions as DeviceOptions
    from devicecore.device_factory import FactoryRegistry as FactoryRegistry
    from devicecore.device_factory import Registrar as Registrar
    from devicecore.device_factory import Registration as Registration
    from devicecore.device_factory import default_registry as default_registry
    from devicecore.device_mgr import DeviceMgr as DeviceMgr
    from devicecore.device_set import DeviceSet as DeviceSet
    from devicecore.kernels import Kernel as Kernel
    from devicecore.kernels import KernelRegistry as KernelRegistry
    from devicecore.kernels import get_kernel as get_kernel
    from devicecore.kernels import kernel as kernel
    from devicecore.ledger import Ledger as Ledger
    from devicecore.ledger import default_ledger as default_ledger
    from devicecore.liveness import Liveness as Liveness
    from devicecore.liveness import PhysicalDevice as PhysicalDevice
    from devicecore.names import DeviceName as DeviceName
    from devicecore.resolution import Resolution as Resolution
    from devicecore.resolution import get_providers as get_providers
    from devicecore.resolution import is_gpu_available as is_gpu_available
    from devicecore.resolution import resolve as resolve
    from devicecore.resolution import resolve_device as resolve_device
    from devicecore.resolution import torch_available as torch_available
    from devicecore.resources import OpSegment as OpSegment
    from devicecore.resources import ResourceMgr as ResourceMgr
    from devicecore.runtime import default_manager as default_manager
    from devicecore.scope import PlaceEnv as PlaceEnv
    from devicecore.scope import capture as capture
    from devicecore.scope import current_device as current_device
    from devicecore.scope import device_scope as device_scope
    from devicecore.scope import get_default_device as get_default_device
    from devicecore.scope import propagate as propagate
    from devicecore.scope import set_default_device as set_default_device
    from devicecore.transfer import as_tensor as as_tensor
    from devicecore.transfer import tensors_to_device as tensors_to_device
    from devicecore.transfer import to_numpy as to_numpy

__version__ = "0.1.0"

# Which module each public name comes from.
_HOMES = {
    "Candidate": "device_factory",
    "Device": "device",
    "DeviceAttributes": "device",
    "DeviceFactory": "device_factory",
    "DeviceLocality": "device",
    "DeviceMgr": "device_mgr",
    "DeviceName": "names",
    "DeviceOptions": "device_factory",
    "DeviceSet": "device_set",
    "FactoryRegistry": "device_factory",
    "Kernel": "kernels",
    "KernelRegistry": "kernels",
    "Ledger": "ledger",
    "Liveness": "liveness",
    "OpSegment": "resources",
    "PhysicalDevice": "liveness",
    "PlaceEnv": "scope",
    "Registrar": "device_factory",
    "Registration": "device_factory",
    "Resolution": "resolution",
    "ResourceMgr": "resources",
    "as_tensor": "transfer",
    "capture": "scope",
    "current_device": "scope",
    "default_ledger": "ledger",
    "default_manager": "runtime",
    "default_registry": "device_factory",
    "device_scope": "scope",
    "get_default_device": "scope",
    "get_kernel": "kernels",
    "get_providers": "resolution",
    "is_gpu_available": "resolution",
    "kernel": "kernels",
    "propagate": "scope",
    "resolve": "resolution",
    "resolve_device": "resolution",
    "set_default_device": "scope",
    "tensors_to_device": "transfer",
    "to_numpy": "transfer",
    "torch_available": "resolution",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a test holds it against what a checker sees


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from devicecore.optional.importing import import_own  # late: it imports the errors

    value = getattr(import_own(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, "__version__"})
