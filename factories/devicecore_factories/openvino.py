"""OPENVINO: Intel's CPUs, GPUs and NPUs for ONNX models, through the plug-in or a build with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.liveness import PhysicalDevice
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec, probe_provider, provider_library
from devicecore_factories import _answers, _hardware
from devicecore_factories._backend import BackendFactory, facts_of
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._session_probe import (
    Offer,
    look_at,
    plugin_cards,
    session_of,
    try_offers,
    with_session,
)

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness

_PROVIDER = "OpenVINOExecutionProvider"
_PLUGIN = Offer(_PROVIDER, plugin=True)
_BUILT_IN = Offer(_PROVIDER)
_MAKER = "GenuineIntel"
_KINDS = ("GPU", "NPU", "CPU")


class OpenVINOPluginFactory(BackendFactory):
    """Makes a device for each piece of hardware that the plug-in offers.

    It takes arguments from the host's memory, whatever it runs on.
    """

    device_type = "OPENVINO"
    priority = 190
    frameworks = ("onnx",)
    hardware = "hardware of Intel"
    probe_timeout_s = 60.0  # on a GPU or NPU its compiler runs for seconds, even for a small model

    def is_here(self) -> bool | None:
        maker = _hardware.cpu_maker()
        cards = _hardware.pci_cards(_hardware.INTEL, accelerators=True)
        if maker == _MAKER or cards:
            return True
        return False if maker and cards is not None else None

    def look(self, framework: str) -> Liveness:
        return look_at([_PLUGIN])

    def try_out(self, framework: str) -> Liveness:
        return try_offers([_PLUGIN], lambda offer: plugin_cards("OPENVINO", offer, _KINDS))

    def make(self, card: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        return SessionDevice(
            name,
            memory=DeviceName(device_type="CPU", index=0),
            session=session_of(card),
            threads=options.threads,
            **facts_of(evolve(card, description=f"OpenVINO on {card.description}"), options),
        )


class OpenVINOInTreeFactory(OpenVINOPluginFactory):
    """The same for a build of ONNX Runtime with OpenVINO in it.

    Such a build lists no devices, so each kind is tried.
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
        tried = [(kind, probe_provider(_session(kind))) for kind in _KINDS]
        live = [(kind, answer) for kind, answer in tried if answer.is_live]
        if not live:
            return _answers.best(answer for _, answer in tried)
        return _answers.of_cards(
            "onnx", [(_card(index, kind), answer) for index, (kind, answer) in enumerate(live)]
        )


def _session(kind: str) -> SessionSpec:
    return SessionSpec(_PROVIDER, {"device_type": kind})


def _card(index: int, kind: str) -> PhysicalDevice:
    card = PhysicalDevice("OPENVINO", index, _physical_id(kind), f"the {kind}", kind)
    return with_session(card, _session(kind))


def _physical_id(kind: str) -> str | None:
    """Return what the hardware is called elsewhere: which GPU it is can be told of a single one."""
    gpus = (_hardware.pci_cards(_hardware.INTEL) or ()) if kind == "GPU" else ()
    known = ["cpu"] if kind == "CPU" else [card.address for card in gpus]
    return known[0] if len(known) == 1 else None
