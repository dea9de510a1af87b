"""What the factories ask of torch is there in torch 2.4, the oldest one that is promised.

The names are those of its own ``torch/mps``, ``torch/xpu`` and ``torch/cuda``; no such GPU was
here, so the modules are stand-ins that have these names and no others.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device_factory import DeviceOptions
from devicecore.errors import NotLiveError
from devicecore.ledger import default_ledger
from devicecore.liveness import PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore_factories._torch_device import TorchDevice
from devicecore_factories.mps import MpsFactory

if TYPE_CHECKING:
    from collections.abc import Callable

torch = pytest.importorskip("torch")

XPU = {
    "current_stream": lambda device: SimpleNamespace(query=lambda: True),
    "is_initialized": lambda: True,
    "set_device": lambda index: None,
    "synchronize": lambda device=None: None,
    "_is_in_bad_fork": lambda: False,
}
MPS = {
    "current_allocated_memory": lambda: 1 << 20,
    "driver_allocated_memory": lambda: 2 << 20,
    "set_per_process_memory_fraction": lambda share: None,
    "synchronize": lambda: None,
    "_is_in_bad_fork": lambda: False,
}
GPU = PhysicalDevice("XPU", 0, None, "a stand-in", memory_bytes=4 << 30)
LIMIT = DeviceOptions(memory_limit=1 << 30)


def made(monkeypatch: pytest.MonkeyPatch, place: str, has: dict[str, Any]) -> TorchDevice:
    kind = place.partition(":")[0]
    monkeypatch.setattr(TorchDevice, "_backend", SimpleNamespace(**has))
    return TorchDevice.on(GPU, f"/device:{kind.upper()}:0", LIMIT, place)


@pytest.mark.parametrize(("place", "has"), [("xpu:0", XPU), ("mps", MPS)])
def test_a_device_of_the_oldest_torch_runs(
    monkeypatch: pytest.MonkeyPatch, place: str, has: dict[str, Callable[..., Any]]
) -> None:
    device = made(monkeypatch, place, has)
    assert device.compute(lambda _: 5) == 5
    assert device.memory_stats()["limit"] == 1 << 30
    device.synchronize()
    device.refresh_status()
    assert not device.was_opened_before_fork()
    device.close()


def test_a_limit_that_torch_cannot_set_is_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    device = made(monkeypatch, "xpu:0", XPU)
    device.compute(lambda _: 5)
    (reason,) = {move.reason for move in default_ledger().moves() if move.op == "memory_limit"}
    assert "xpu" in reason


def apple(monkeypatch: pytest.MonkeyPatch, *, available: bool, **has: Any) -> SimpleNamespace:
    """Return a stand-in for ``torch.mps``, which has no ``is_available`` in torch 2.4."""
    monkeypatch.setattr(_hardware, "SYSTEM", "darwin")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: available)
    return SimpleNamespace(**MPS, **has)


def test_mps_without_metal_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotLiveError) as caught:
        MpsFactory()._gpus(apple(monkeypatch, available=False))
    assert caught.value.state == "broken"


@pytest.mark.parametrize(
    ("has", "memory"), [({}, 0), ({"recommended_max_memory": lambda: 12 << 30}, 12 << 30)]
)
def test_mps_takes_its_memory_from_torch_where_that_tells_it(
    monkeypatch: pytest.MonkeyPatch, has: dict[str, Any], memory: int
) -> None:
    (gpu,) = MpsFactory()._gpus(apple(monkeypatch, available=True, **has))
    (device,) = MpsFactory().create_devices(DeviceOptions(physical=(gpu,)), "")
    assert isinstance(device, TorchDevice)
    assert (device.torch_device, device.attributes.memory_limit) == ("mps:0", memory)
    assert device.frameworks == {"torch"}
