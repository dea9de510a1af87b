"""CUDA: NVIDIA's cards, for torch and for ONNX Runtime."""

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
    on_cards,
    plugin_cards,
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
    """Makes a device for each card, numbered as the CUDA runtime does.

    torch and ONNX Runtime bring their own CUDA libraries, so each is judged for itself.
    """

    device_type = "CUDA"
    priority = 200
    frameworks = ("torch", "onnx")
    hardware = _nvidia.TITLE
    systems = ("linux", "win32")
    probe_timeout_s = 30.0  # a cold driver without persistence takes seconds for each card

    def hidden(self) -> Liveness | None:
        return _nvidia.hidden()

    def runs_here(self, framework: str | None) -> bool:
        torch: Any = sys.modules.get("torch") if framework != "onnx" else None
        return torch is not None and bool(torch.version.cuda and torch.cuda.is_initialized())

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return _nvidia.cards_from_child()

    def look(self, framework: str) -> Liveness:
        seen = torch_metadata("cuda") if framework == "torch" else look_at(_OFFERS)
        return _nvidia.driver_metadata() if seen.state == "untried" else seen

    def try_out(self, framework: str) -> Liveness:
        if framework == "torch":
            return try_torch("cuda:{}", lambda _: _nvidia.CudaDriver().cards())
        return try_offers(_OFFERS, _cards)

    def make(self, card: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        session = None
        if "onnx" in options.frameworks:
            session = _session(card, options.memory_limit)
        shown = evolve(card, description=_description(card))
        if "torch" in options.frameworks:
            return TorchDevice.on(shown, name, options, f"cuda:{card.index}", session)
        return SessionDevice(name, session=session, **facts_of(shown, options))


def _cards(offer: Offer) -> list[PhysicalDevice]:
    cards = _nvidia.CudaDriver().cards()
    if offer.plugin:
        return on_cards(cards, plugin_cards("CUDA", offer, ["GPU"]))
    return [with_session(card, _built_in(card)) for card in cards]


def _built_in(card: PhysicalDevice, limit: int | None = None) -> SessionSpec:
    options = {"device_id": str(card.index)}
    if limit:
        options["gpu_mem_limit"] = str(limit)
    return SessionSpec("CUDAExecutionProvider", options)


def _session(card: PhysicalDevice, limit: int | None) -> SessionSpec:
    """Return how sessions are opened on *card*; a plug-in is known only from its probe."""
    if "session" in card.details and (found := session_of(card)).is_plugin:
        return found
    return _built_in(card, limit)


def _description(card: PhysicalDevice) -> str:
    version = card.details.get("compute_capability", "").replace(".", "")
    return f"{card.description}, sm_{version}" if version else card.description
