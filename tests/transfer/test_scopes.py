"""Where a name without an index goes: a transfer and a scope mean the same device by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, Registrar, default_registry, device_scope
from devicecore.errors import InvalidDeviceNameError, UnknownDeviceError
from devicecore.runtime import Runtime, default_manager
from devicecore.testing import FakeFactory
from devicecore.transfer import tensors_to_device
from devicecore.transfer.target import target_of
from tests.transfer.test_devices import FakeCuda, registry_with, use

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")


class AcmeFactory(FakeFactory):
    """Two GPUs of a class that has no others here."""

    device_type = "Acme"
    count = 2
    device_class = "NPU"


@pytest.fixture
def _acme() -> Iterator[None]:
    Registrar("Acme", AcmeFactory)
    yield
    for device in default_manager().devices_by_type("Acme"):
        default_manager().remove_devices([device])
    (registration,) = default_registry().factories("Acme")
    default_registry().unregister(registration)


def index_of(device: Any) -> int | None:
    found = target_of(device).device
    assert found is not None
    assert found.device_type == "Acme"
    return found.parsed_name.index


@pytest.mark.usefixtures("_acme")
@pytest.mark.parametrize("word", ["acme", "ACME", "npu"])
def test_an_absent_index_is_that_of_the_scope_around(word: str) -> None:
    assert index_of(word) == 0
    with device_scope("acme:1"):
        with device_scope(word) as device:
            assert device is target_of(word).device
        assert index_of(word) == 1
        assert index_of("acme:0") == 0
        with device_scope("cpu"):
            assert index_of(word) == 1
            assert tensors_to_device(value := [torch.ones(1)], "cpu") is value
    assert index_of(word) == 0


def test_a_class_means_the_current_gpu_of_its_first_type(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Runtime(registry_with(FakeCuda))
    use(made, monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert target_of("gpu").torch_device == torch.device("cuda:1")
    assert target_of("gpu:0").torch_device == torch.device("cuda:0")


def test_the_current_gpu_of_an_xpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeXpu(FakeCuda):
        device_type = "XPU"
        torch_name = "xpu"

    registry = registry_with(FakeCuda)
    registry.register_class("XPU", FakeXpu, 100)
    made = Runtime(registry)
    use(made, monkeypatch)
    monkeypatch.setattr(torch.xpu, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.xpu, "current_device", lambda: 1)
    assert target_of("xpu").torch_device == torch.device("xpu:1")


def test_whatever_names_a_device_for_a_scope_does_so_for_a_transfer() -> None:
    for given in ("META", "meta:0", torch.device("meta"), "/device:meta:0"):
        with device_scope(given) as device:
            assert target_of(given).torch_device == torch.device("meta")
            assert target_of(device).torch_device == torch.device("meta")
    for wrong in ("meta:1", "meta:300"):
        with pytest.raises(InvalidDeviceNameError):
            target_of(wrong)
    with pytest.raises(TypeError, match="invalid device"):
        target_of(None)
    with pytest.raises(UnknownDeviceError):
        target_of(77)


def test_a_device_that_only_torch_knows_is_one_for_a_scope_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.mtia, "is_available", lambda: True)
    monkeypatch.setattr(torch.mtia, "device_count", lambda: 2)
    target = target_of("mtia:1")
    assert target.torch_device == torch.device("mtia:1")
    assert isinstance(target.device, Device)
    with pytest.raises(InvalidDeviceNameError):
        target_of("mtia:2")
