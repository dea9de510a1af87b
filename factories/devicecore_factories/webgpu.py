"""WEBGPU: any GPU that Dawn drives through Vulkan, Metal or Direct3D, for ONNX models."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import evolve

from devicecore import config
from devicecore.liveness import Liveness
from devicecore_factories._backend import BackendFactory, facts_of
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._session_probe import (
    Offer,
    look_at,
    plugin_gpus,
    session_of,
    try_offers,
)

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import PhysicalDevice

_OFFER = Offer("WebGpuExecutionProvider", plugin=True)
_ALLOW_SOFTWARE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


class WebGPUFactory(BackendFactory):
    """Makes a device for each GPU that the plug-in offers; its memory is its own."""

    device_type = "WEBGPU"
    priority = 120
    frameworks = ("onnx",)
    hardware = "GPU"
    probe_timeout_s = 30.0  # shaders are compiled at the first run, in software quite slowly
    adapter: ClassVar[str] = "GPU"

    def look(self, framework: str) -> Liveness:
        return look_at([_OFFER])

    def try_out(self, framework: str) -> Liveness:
        return try_offers([_OFFER], lambda offer: plugin_gpus("WEBGPU", offer, [self.adapter]))

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        shown = evolve(gpu, description=f"WebGPU on {gpu.description}")
        return SessionDevice(name, session=session_of(gpu), **facts_of(shown, options))


class SoftwareWebGPUFactory(WebGPUFactory):
    """The same for an adapter in software, such as SwiftShader: slow, and right for tests."""

    priority = 40
    adapter = "CPU"

    def is_here(self) -> bool | None:
        return None

    def hidden(self) -> Liveness | None:
        if config.load().visible.get(_ALLOW_SOFTWARE) == "1":
            return None
        reason = f"an adapter in software, for tests, is taken only where {_ALLOW_SOFTWARE}=1"
        return Liveness("absent", reason=reason)
