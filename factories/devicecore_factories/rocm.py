"""ROCM: AMD's GPUs, for torch and for ONNX Runtime."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.errors import NotLiveError
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec, ort_package
from devicecore_factories import _amd
from devicecore_factories._backend import BackendFactory, facts_of
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._session_probe import (
    Offer,
    look_at,
    session_of,
    try_offers,
    with_session,
)
from devicecore_factories._torch_device import TorchDevice
from devicecore_factories._torch_probe import torch_gpus, torch_metadata, try_torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness, PhysicalDevice

# The second was removed after ONNX Runtime 1.22.
_OFFERS = (Offer("MIGraphXExecutionProvider"), Offer("ROCMExecutionProvider"))


class RocmFactory(BackendFactory):
    """Makes a device for each GPU, numbered as HIP does; torch calls them ``cuda:0`` and so on."""

    device_type = "ROCM"
    priority = 194
    frameworks = ("torch", "onnx")
    hardware = _amd.TITLE
    systems = ("linux", "win32")
    probe_timeout_s = 60.0  # kernels are loaded, and for MIGraphX compiled, at the first use

    def hidden(self) -> Liveness | None:
        return _amd.hidden()

    def runs_here(self, framework: str | None) -> bool:
        torch: Any = sys.modules.get("torch") if framework != "onnx" else None
        return torch is not None and bool(torch.version.hip and torch.cuda.is_initialized())

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return _amd.gpus()

    def look(self, framework: str) -> Liveness:
        return torch_metadata("hip") if framework == "torch" else look_at(_OFFERS)

    def try_out(self, framework: str) -> Liveness:
        if framework == "torch":
            return try_torch("cuda:{}", self._torch_gpus)
        return try_offers(_OFFERS, self._onnx_gpus)

    def _torch_gpus(self, module: Any) -> list[PhysicalDevice]:
        listed = _amd.gpus()
        agreed = len(listed) == module.device_count()
        gpus = torch_gpus("ROCM", module, lambda index, _: listed[index] if agreed else None)
        if not gpus:
            raise NotLiveError("ROCM", "missing", "torch shows no AMD GPU", _amd.DRIVER_FIX)
        return gpus

    def _onnx_gpus(self, offer: Offer) -> list[PhysicalDevice]:
        gpus = _amd.gpus()
        if not gpus:
            raise NotLiveError(
                "ROCM", "missing", "ROCm's kernel driver lists no GPU", _amd.DRIVER_FIX
            )
        return [with_session(gpu, _session(offer.provider, gpu)) for gpu in gpus]

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        session = _known_session(gpu) if "onnx" in options.frameworks else None
        if "torch" in options.frameworks:
            return TorchDevice.on(gpu, name, options, f"cuda:{gpu.index}", session)
        host = DeviceName(device_type="CPU", index=0)
        return SessionDevice(name, memory=host, session=session, **facts_of(gpu, options))


def _session(provider: str, gpu: PhysicalDevice) -> SessionSpec:
    return SessionSpec(provider, {"device_id": str(gpu.index)})


def _known_session(gpu: PhysicalDevice) -> SessionSpec:
    if "session" in gpu.details:
        return session_of(gpu)
    package = ort_package()
    old = package is not None and package.distribution == "onnxruntime-rocm"
    return _session(_OFFERS[1 if old else 0].provider, gpu)
