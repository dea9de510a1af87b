"""CUDA: NVIDIA's GPUs, for torch and for ONNX Runtime."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore.ort import SessionSpec
from devicecore_factories import _nvidia
from devicecore_factories._backend import BackendFactory, facts_of
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._session_probe import (
    Offer,
    look_at,
    on_gpus,
    plugin_gpus,
    session_of,
    try_offers,
    with_session,
)
from devicecore_factories._torch_device import TorchDevice
from devicecore_factories._torch_probe import torch_metadata, try_torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness, PhysicalDevice

_OFFERS = (Offer("CUDAExecutionProvider"), Offer("cuda_ep", plugin=True))


class CudaFactory(BackendFactory):
    """Makes a device for each GPU, numbered as the CUDA runtime does.

    torch and ONNX Runtime bring their own CUDA libraries, so each is judged for itself.
    """

    device_type = "CUDA"
    priority = 200
    frameworks = ("torch", "onnx")
    hardware = _nvidia.TITLE
    systems = ("linux", "win32")
    probe_timeout_s = 30.0  # a cold driver without persistence takes seconds for each GPU

    def hidden(self) -> Liveness | None:
        return _nvidia.hidden()

    def runs_here(self, framework: str | None) -> bool:
        torch: Any = sys.modules.get("torch") if framework != "onnx" else None
        return torch is not None and bool(torch.version.cuda and torch.cuda.is_initialized())

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return _nvidia.gpus_from_child()

    def look(self, framework: str) -> Liveness:
        seen = torch_metadata("cuda") if framework == "torch" else look_at(_OFFERS)
        return _nvidia.driver_metadata() if seen.state == "untried" else seen

    def try_out(self, framework: str) -> Liveness:
        if framework == "torch":
            return try_torch("cuda:{}", lambda _: _nvidia.CudaDriver().gpus())
        return try_offers(_OFFERS, _gpus)

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        session = None
        if "onnx" in options.frameworks:
            session = _session(gpu, options.memory_limit)
        shown = evolve(gpu, description=_description(gpu))
        if "torch" in options.frameworks:
            return TorchDevice.on(shown, name, options, f"cuda:{gpu.index}", session)
        return SessionDevice(name, session=session, **facts_of(shown, options))


def _gpus(offer: Offer) -> list[PhysicalDevice]:
    gpus = _nvidia.CudaDriver().gpus()
    if offer.plugin:
        return on_gpus(gpus, plugin_gpus("CUDA", offer, ["GPU"]))
    return [with_session(gpu, _built_in(gpu)) for gpu in gpus]


def _built_in(gpu: PhysicalDevice, limit: int | None = None) -> SessionSpec:
    options = {"device_id": str(gpu.index)}
    if limit:
        options["gpu_mem_limit"] = str(limit)
    return SessionSpec("CUDAExecutionProvider", options)


def _session(gpu: PhysicalDevice, limit: int | None) -> SessionSpec:
    """Return how sessions are opened on *gpu*; a plug-in is known only from its probe."""
    if "session" in gpu.details and (found := session_of(gpu)).is_plugin:
        return found
    return _built_in(gpu, limit)


def _description(gpu: PhysicalDevice) -> str:
    version = gpu.details.get("compute_capability", "").replace(".", "")
    return f"{gpu.description}, sm_{version}" if version else gpu.description
