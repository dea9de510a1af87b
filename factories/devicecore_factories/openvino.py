"""OPENVINO: Intel's CPUs, GPUs and NPUs for ONNX models, through the plug-in or a build with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.liveness import PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore.names import DeviceName
from devicecore.optional import require
from devicecore.ort import SessionSpec, probe_provider, provider_library
from devicecore_factories import _answers
from devicecore_factories._backend import BackendFactory, facts_of
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._session_probe import (
    Offer,
    look_at,
    plugin_gpus,
    session_of,
    try_offers,
    with_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness

_PROVIDER = "OpenVINOExecutionProvider"
_PLUGIN = Offer(_PROVIDER, plugin=True)
_BUILT_IN = Offer(_PROVIDER)
_MAKER = "GenuineIntel"
_KINDS = ("GPU", "NPU", "CPU")  # of the plug-in


class OpenVINOPluginFactory(BackendFactory):
    """Makes a device for each piece of hardware that the plug-in offers.

    It takes arguments from the host's memory, whatever it runs on.
    """

    device_type = "OPENVINO"
    priority = 190
    frameworks = ("onnx",)
    hardware = "hardware of Intel"
    probe_timeout_s = 60.0  # on a GPU or NPU its compiler runs for seconds, even for a small model

    def look(self, framework: str) -> Liveness:
        return look_at([_PLUGIN])

    def try_out(self, framework: str) -> Liveness:
        return try_offers([_PLUGIN], lambda offer: plugin_gpus("OPENVINO", offer, _KINDS))

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        return SessionDevice(
            name,
            memory=DeviceName(device_type="CPU", index=0),
            session=session_of(gpu),
            threads=options.threads,
            **facts_of(evolve(gpu, description=f"OpenVINO on {gpu.description}"), options),
        )


class OpenVINOInTreeFactory(OpenVINOPluginFactory):
    """The same for a build of ONNX Runtime with OpenVINO in it.

    Such a build lists no EpDevices, so each piece of hardware that OpenVINO may know is tried.
    """

    priority = 188

    def is_here(self) -> bool | None:
        """Return None where such a build is installed: its CPU part runs on every processor."""
        return None if provider_library(_PROVIDER) else super().is_here()

    def look(self, framework: str) -> Liveness:
        seen = look_at([_BUILT_IN])
        # The plug-in replaces no other build, so it is what is proposed, by its own factory.
        return evolve(seen, fix="") if seen.state == "missing" else seen

    def try_out(self, framework: str) -> Liveness:
        names = _names_of_openvino()
        tried = [(name, probe_provider(_session(name))) for name in names]
        live = [(name, answer) for name, answer in tried if answer.is_live]
        if not live:
            return _answers.best(answer for _, answer in tried)
        ids = _physical_ids([name for name, _ in live])
        return _answers.of_gpus(
            "onnx",
            [(_gpu(index, name, ids), answer) for index, (name, answer) in enumerate(live)],
        )


def _names_of_openvino() -> list[str]:
    """Return OpenVINO's names of the hardware to try: ``GPU.1`` is its second GPU."""
    count = len(_hardware.pci_gpus(_hardware.INTEL) or ())
    gpus = [f"GPU.{index}" for index in range(count)] if count > 1 else ["GPU"]
    if not count:  # Windows and WSL show no bus, but the build itself may tell
        gpus = [name for name in _told_by_the_build() if name.startswith("GPU")] or gpus
    return [*gpus, "NPU", "CPU"]


def _told_by_the_build() -> list[str]:
    state = require("onnxruntime.capi._pybind_state", extra="onnx")
    ask = getattr(state, "get_available_openvino_device_ids", list)
    try:
        return sorted(map(str, ask()))
    except Exception:  # noqa: BLE001 - a driver may raise anything
        return []


def _session(name: str) -> SessionSpec:
    return SessionSpec(_PROVIDER, {"device_type": name})


def _gpu(index: int, name: str, ids: Mapping[str, str]) -> PhysicalDevice:
    kind = name.partition(".")[0]
    gpu = PhysicalDevice("OPENVINO", index, ids.get(name), f"the {name}", kind)
    return with_session(gpu, _session(name))


def _addresses() -> list[str]:
    return [gpu.address for gpu in _hardware.pci_gpus(_hardware.INTEL) or ()]


def _physical_ids(names: Iterable[str]) -> dict[str, str]:
    """Return what the hardware is called elsewhere, by OpenVINO's names.

    OpenVINO counts its GPUs as the bus does, the one inside the processor first. Where the bus
    holds another number of them than work, nothing is said.
    """
    gpus = [name for name in names if name.startswith("GPU")]
    under_wsl = _hardware.wsl_gpu()
    places = [under_wsl] if under_wsl else _addresses()
    known = dict(zip(gpus, places, strict=True)) if len(gpus) == len(places) else {}
    return {**known, "CPU": "cpu"}
