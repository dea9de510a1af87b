"""Registering factories: who may, under which name, and in which order they stand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from devicecore.device_factory import (
    UNREGISTERED_PRIORITY,
    DeviceFactory,
    DeviceOptions,
    FactoryRegistry,
    Registrar,
    Registration,
    default_registry,
)
from devicecore.errors import RegistrationError, UnknownDeviceError
from devicecore.testing import FakeFactory

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture
def registry() -> FactoryRegistry:
    return FactoryRegistry()


def fake(name: str = "Fake", **fields: Any) -> type[FakeFactory]:
    """Return a new class with a name of its own."""
    return type(name, (FakeFactory,), {"device_type": "NPU", "__module__": __name__, **fields})


def put(registry: FactoryRegistry, name: str = "Fake", **fields: Any) -> Registration:
    priority = fields.pop("priority", 50)
    factory = fake(name, **fields)
    return registry.register_class(factory.device_type, factory, priority)


class TestRegistering:
    def test_priorities_are_tensorflows(self, registry: FactoryRegistry) -> None:
        for device_type, priority in {"GPU": 200, "SYCL": 200, "NPU": 50, "d2": 50}.items():
            registry.register_class(device_type, fake(priority=None, device_type=device_type))
            assert registry.device_priority(device_type) == priority
        assert registry.device_priority("nobody's") == UNREGISTERED_PRIORITY == -1

    def test_the_argument_goes_before_the_factorys_own_priority(
        self, registry: FactoryRegistry
    ) -> None:
        registry.register_class("NPU", fake("Own", priority=7))
        assert registry.device_priority("NPU") == 7
        registry.register_class("NPU", fake("Told", priority=7), 9)
        assert registry.device_priority("NPU") == 9

    def test_the_registrar_registers_at_once_or_as_a_decorator(
        self, registry: FactoryRegistry
    ) -> None:
        at_once = Registrar("NPU", fake("AtOnce"), 3, registry=registry)
        assert at_once.registration in registry.factories("NPU")

        decorator = Registrar("npu", priority=4, registry=registry)
        assert decorator.registration is None

        @decorator
        class Decorated(FakeFactory):
            device_type = "NPU"

        assert Decorated.device_type == "NPU"
        assert [entry.priority for entry in registry.factories("NPU")] == [4, 3]
        decorator.unregister()
        at_once.unregister()
        assert registry.factories() == ()
        with pytest.raises(RegistrationError):
            at_once.unregister()

    @pytest.mark.parametrize("wrong", [None, 3, "", "a b", ["NPU"]])
    def test_what_is_no_type_is_refused(self, registry: FactoryRegistry, wrong: Any) -> None:
        with pytest.raises(RegistrationError, match="a type is a letter"):
            Registrar(wrong, fake("Refused"), registry=registry)

    def test_the_class_methods_are_tensorflows_and_use_the_default_registry(self) -> None:
        factory = fake("ThroughClassMethods", device_type="ClassMethodNPU", count=3)
        registration = DeviceFactory.register("ClassMethodNPU", factory, 17)
        try:
            assert registration in default_registry().factories()
            assert DeviceFactory.device_priority("ClassMethodNPU") == 17
            assert isinstance(DeviceFactory.get_factory("ClassMethodNPU"), factory)
            device = DeviceFactory.new_device("ClassMethodNPU", DeviceOptions(), "/job:w")
            assert device.name == "/job:w/device:ClassMethodNPU:0"
        finally:
            default_registry().unregister(registration)
        assert DeviceFactory.device_priority("ClassMethodNPU") == -1

    def test_the_same_again_changes_nothing(self, registry: FactoryRegistry) -> None:
        factory = fake()
        first = registry.register_class("NPU", factory)
        assert registry.register_class("NPU", factory) == first
        assert len(registry.factories()) == 1

    def test_another_of_the_same_name_has_to_override(self, registry: FactoryRegistry) -> None:
        put(registry, "Fake", count=1)
        with pytest.raises(RegistrationError, match="override=True"):
            put(registry, "Fake", count=2)
        assert len(registry.get_factory("NPU").list_physical_devices()) == 1
        registry.register_class("NPU", fake("Fake", count=2), 50, override=True)
        assert len(registry.factories()) == 1
        assert len(registry.get_factory("NPU").list_physical_devices()) == 2

    @pytest.mark.parametrize("device_type", ["Mynpu", "MYNPU"])
    def test_a_type_that_differs_only_by_case_is_refused(
        self, device_type: str, registry: FactoryRegistry
    ) -> None:
        put(registry, device_type="MyNPU")
        with pytest.raises(RegistrationError, match="'MyNPU' only by case"):
            put(registry, "Other", device_type=device_type)
        assert registry.known_types == {"MyNPU"}

    @pytest.mark.parametrize("device_type", ["", "2fast", "a b", "a:0", "é", "*"])
    def test_a_type_has_to_be_a_word(self, device_type: str, registry: FactoryRegistry) -> None:
        with pytest.raises(RegistrationError):
            registry.register_class(device_type, fake())

    def test_what_is_not_registered_cannot_be_unregistered(self, registry: FactoryRegistry) -> None:
        registration = put(registry)
        registry.unregister(registration)
        with pytest.raises(RegistrationError):
            registry.unregister(registration)
        with pytest.raises(UnknownDeviceError) as caught:
            registry.get_factory("NPU")
        assert caught.value.known == ()


class TestOrder:
    ENTRIES = (
        Registration("NPU", "never:A", 220, "acme", "a"),
        Registration("NPU", "never:B", 220, "bolt", "b"),
        Registration("NPU", "never:C", 220, "bolt", "c"),
        Registration("NPU", "never:D", 221, "zebra", "d"),
        Registration("CUDA", "never:E", 220, "zebra", "e"),
    )

    @pytest.mark.parametrize("seed", range(10))
    def test_it_does_not_depend_on_who_came_first(
        self, seed: int, registry: FactoryRegistry
    ) -> None:
        order = list(itertools.permutations(self.ENTRIES))[seed * 11]
        for entry in order:
            registry.register(entry)
        assert [entry.entry_name for entry in registry.factories()] == ["d", "e", "a", "b", "c"]
        assert registry.device_types == ("NPU", "CUDA")

    def test_the_users_wish_goes_first(
        self, registry: FactoryRegistry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for entry in self.ENTRIES:
            registry.register(entry)
        monkeypatch.setenv("DEVICECORE_PREFER", "rocm,cuda")
        assert registry.device_types == ("CUDA", "NPU")
        monkeypatch.setenv("DEVICECORE_PREFER", "npu,cuda")
        assert registry.device_types == ("NPU", "CUDA")

    def test_equal_priorities_are_told(self, registry: FactoryRegistry) -> None:
        put(registry, "One", priority=5)
        put(registry, "Two", priority=5)
        put(registry, "Three", priority=4)
        put(registry, "Other", priority=5, device_type="TPU")
        ties = {each.registration.entry_name: each.ties for each in registry.explain()}
        assert ties == {
            "One": (f"{__name__} (Two)",),
            "Two": (f"{__name__} (One)",),
            "Three": (),
            "Other": (),
        }
        assert type(registry.get_factory("NPU")).__name__ == "One"
