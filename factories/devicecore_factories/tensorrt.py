"""TENSORRT: NVIDIA's GPUs through TensorRT, with the arguments in CUDA's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.names import DeviceName
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness, PhysicalDevice

# The plug-in is made for GPUs of the RTX kind and offers no device on others.
_OFFERS = (
    Offer("TensorrtExecutionProvider"),
    Offer("NvTensorRTRTXExecutionProvider", plugin=True),
)


class TensorRTFactory(BackendFactory):
    """Makes a device for each GPU, numbered as the CUDA runtime does."""

    device_type = "TENSORRT"
    priority = 198
    frameworks = ("onnx",)
    hardware = _nvidia.TITLE
    systems = ("linux", "win32")
    probe_timeout_s = 120.0  # it tries out its kernels before it runs even the smallest model

    def hidden(self) -> Liveness | None:
        return _nvidia.hidden()

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return [evolve(gpu, device_type="TENSORRT") for gpu in _nvidia.gpus_from_child()]

    def look(self, framework: str) -> Liveness:
        seen = look_at(_OFFERS)
        return _nvidia.driver_metadata() if seen.state == "untried" else seen

    def try_out(self, framework: str) -> Liveness:
        return try_offers(_OFFERS, _gpus)

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        return SessionDevice(
            name,
            memory=DeviceName(device_type="CUDA", index=gpu.index),
            session=session_of(gpu) if "session" in gpu.details else _built_in(gpu),
            **facts_of(evolve(gpu, description=f"TensorRT on {gpu.description}"), options),
        )


def _gpus(offer: Offer) -> list[PhysicalDevice]:
    gpus = [evolve(gpu, device_type="TENSORRT") for gpu in _nvidia.CudaDriver().gpus()]
    if offer.plugin:
        return on_gpus(gpus, plugin_gpus("TENSORRT", offer, ["GPU"]))
    return [with_session(gpu, _built_in(gpu)) for gpu in gpus]


def _built_in(gpu: PhysicalDevice) -> SessionSpec:
    return SessionSpec("TensorrtExecutionProvider", {"device_id": str(gpu.index)})
