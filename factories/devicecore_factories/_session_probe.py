"""Devices of ONNX Runtime: what offers them, and tried one by one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import asdict, evolve, frozen

from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore.ort import (
    SessionSpec,
    ep_devices,
    plugin_library,
    probe_provider,
    provider_metadata,
    provider_named,
    register,
)
from devicecore.ort.plugins import native_device
from devicecore_factories import _answers, _nvidia

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from devicecore.ort import EpDevice


@frozen
class Offer:
    """One way to a kind of device: a provider, built into ONNX Runtime or a plug-in.

    Attributes:
        provider: ONNX Runtime's name of it.
        plugin: Whether it is a plug-in.
    """

    provider: str
    plugin: bool = False

    def look(self) -> Liveness:
        """Return what its files say."""
        return provider_metadata(self.provider, plugin=self.plugin)

    def ep_devices(self) -> tuple[EpDevice, ...]:
        """Return what a plug-in offers on this machine; imports ONNX Runtime.

        Raises:
            NotLiveError: The plug-in cannot be loaded.
        """
        known = provider_named(self.provider).plugin
        library = plugin_library(known) if known else None
        if library is not None:
            register(library)
        return ep_devices(self.provider)


def look_at(offers: Iterable[Offer]) -> Liveness:
    """Return what files say of the best offer."""
    return _answers.best(offer.look() for offer in offers)


def try_offers(
    offers: Iterable[Offer], gpus_of: Callable[[Offer], Sequence[PhysicalDevice]]
) -> Liveness:
    """Run a small model on every GPU of the first offer that works, and compare.

    Args:
        offers: The ways to the GPUs, best first; at least one.
        gpus_of: Returns the GPUs of one, each with its session.
    """
    tried: list[Liveness] = []
    for offer in offers:
        answer = offer.look()
        if answer.state == "untried":
            answer = _try(offer, gpus_of)
        if answer.is_live:
            return answer
        tried.append(answer)
    return _answers.best(tried)


def _try(offer: Offer, gpus_of: Callable[[Offer], Sequence[PhysicalDevice]]) -> Liveness:
    try:
        gpus = gpus_of(offer)
    except NotLiveError as error:
        return _answers.not_live(error)
    return _answers.of_gpus("onnx", [(gpu, probe_provider(session_of(gpu))) for gpu in gpus])


def plugin_gpus(device_type: str, offer: Offer, hardware: Iterable[str]) -> list[PhysicalDevice]:
    """Return the devices that a plug-in offers on *hardware*, each with its session.

    Args:
        device_type: Their type.
        offer: The plug-in.
        hardware: Of ``"CPU"``, ``"GPU"`` and ``"NPU"`` those that count.

    Raises:
        NotLiveError: The plug-in cannot be loaded, or offers no such device.
    """
    kinds = tuple(hardware)
    offered = offer.ep_devices()
    if not offered:
        native_device(offer.provider, 0)  # raises, and says what hardware there is instead
    found = [device for device in offered if device.hardware in kinds]
    if not found:
        others = ", ".join(f"{device.hardware} of {device.vendor}" for device in offered)
        raise NotLiveError(offer.provider, "absent", f"it offers only the {others}")
    return [_gpu(device_type, index, device) for index, device in enumerate(found)]


def _gpu(device_type: str, index: int, device: EpDevice) -> PhysicalDevice:
    where = _address(device)
    gpu = PhysicalDevice(
        device_type,
        index,
        _physical_id(device, where),
        f"{device.hardware} of {device.vendor or 'an unknown maker'}",
        device.hardware,
        numa_node=_hardware.numa_node(where) if where else None,
        details={"pci_bus_id": where} if where else {},
    )
    spec = SessionSpec(device.provider, ep_device_index=device.index, library=device.library)
    return with_session(gpu, spec)


def _physical_id(device: EpDevice, address: str) -> str | None:
    if device.hardware == "CPU":
        return "cpu"
    under_wsl = _nvidia.id_under_wsl() if device.hardware == "GPU" else None
    return under_wsl or _hardware.physical_id(address)


def _address(device: EpDevice) -> str:
    facts = {**device.metadata, **device.hardware_metadata}
    text = facts.get("pci_bus_id", "")
    return _hardware.pci_address(text) if text else ""


def on_gpus(
    gpus: Iterable[PhysicalDevice], offered: Iterable[PhysicalDevice]
) -> list[PhysicalDevice]:
    """Return those of *gpus* that are *offered*, each with its session.

    They are told by their place on the bus; where no place is told, or one that only WSL knows,
    by their order.
    """
    gpus = list(gpus)
    places = {gpu.details.get("pci_bus_id", ""): gpu for gpu in offered}
    known = {gpu.details.get("pci_bus_id", "") for gpu in gpus}
    only_of_wsl = _hardware.exists("dev/dxg") and known.isdisjoint(places)
    in_order = list(offered) if places.keys() == {""} or only_of_wsl else []
    found = []
    for number, gpu in enumerate(gpus):
        match = places.get(gpu.details.get("pci_bus_id", ""))
        if in_order:
            match = in_order[number] if number < len(in_order) else None
        if match is not None:
            found.append(with_session(gpu, session_of(match)))
    return found


def with_session(gpu: PhysicalDevice, spec: SessionSpec) -> PhysicalDevice:
    """Return *gpu* with *spec* among its details, so that it survives the way from a child."""
    return evolve(gpu, details={**gpu.details, "session": json.dumps(asdict(spec))})


def session_of(gpu: PhysicalDevice) -> SessionSpec:
    """Return how a session is opened on *gpu*.

    Raises:
        KeyError: `with_session` did not put it there.
    """
    return SessionSpec(**json.loads(gpu.details["session"]))
