"""COREML: Apple's neural engine, GPU and CPU behind CoreML, for ONNX models."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from devicecore.liveness import PhysicalDevice
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec
from devicecore_factories._backend import BackendFactory, facts_of
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._session_probe import (
    Offer,
    look_at,
    session_of,
    try_offers,
    with_session,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness

_PROVIDER = "CoreMLExecutionProvider"


class CoreMLFactory(BackendFactory):
    """Makes the one device; CoreML itself spreads a model over the chip's units."""

    device_type = "COREML"
    priority = 196
    frameworks = ("onnx",)
    hardware = "Apple chip"
    systems = ("darwin",)
    probe_timeout_s = 60.0  # the system's compiler of models starts at the first one

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        if not self.exists_here():
            return ()
        chip = PhysicalDevice(
            "COREML", 0, description=f"CoreML on {platform.machine()}", device_class="NPU"
        )
        return (with_session(chip, SessionSpec(_PROVIDER)),)

    def look(self, framework: str) -> Liveness:
        return look_at([Offer(_PROVIDER)])

    def try_out(self, framework: str) -> Liveness:
        return try_offers([Offer(_PROVIDER)], lambda _: self.list_physical_devices())

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        host = DeviceName(device_type="CPU", index=0)
        session = session_of(gpu)
        return SessionDevice(name, memory=host, session=session, **facts_of(gpu, options))
