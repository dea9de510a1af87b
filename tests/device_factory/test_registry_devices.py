"""From factories to devices: one that fails costs only itself, and every other device comes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device_factory import (
    DeviceFactory,
    DeviceOptions,
    FactoryRegistry,
    Registration,
)
from devicecore.device_factory.device_creation import host_device
from devicecore.device_mgr import LOCAL_TASK, DeviceMgr
from devicecore.errors import NotLiveError, UnknownDeviceError
from devicecore.ledger import default_ledger
from devicecore.liveness import Liveness
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from devicecore.kernels import Kernel

UNRULY = Path(__file__).parents[1] / "plugins" / "unruly"

pytestmark = pytest.mark.usefixtures("cache_dir")


class Host(FakeFactory):
    """As our own factory of the CPU, it is known to be live without a probe."""

    device_type = "CPU"
    device_class = "CPU"
    priority: int | None = 60


@pytest.fixture
def registry() -> FactoryRegistry:
    """Return a registry that has a CPU."""
    made = FactoryRegistry()
    made.register(Registration("CPU", Host, 60, "test", "Host", trusted=True))
    return made


def put(
    registry: FactoryRegistry, name: str, base: type[FakeFactory] = FakeFactory, **fields: Any
) -> Registration:
    """Register a new class, which is asked in this process since no other could import it."""
    device_type = fields.setdefault("device_type", "NPU")
    factory = type(name, (base,), {"__module__": __name__, **fields})
    return registry.register_class(device_type, factory, fields.get("priority"))


def labels(devices: Iterable[Device]) -> list[str]:
    return [f"{device.device_type}:{device.parsed_name.index}" for device in devices]


class TestMaking:
    def test_the_cpu_comes_first_and_all_live_types_follow(self, registry: FactoryRegistry) -> None:
        put(registry, "Npu", count=2, priority=300)
        put(registry, "Dead", device_type="TPU", answer=Liveness("absent"))
        devices = registry.add_devices(DeviceOptions(), LOCAL_TASK)
        assert labels(devices) == ["CPU:0", "NPU:0", "NPU:1"]
        assert devices[1].name == f"{LOCAL_TASK}/device:NPU:0"
        assert [device.priority for device in devices] == [60, 300, 300]

    def test_without_a_cpu_there_is_nothing(self) -> None:
        registry = FactoryRegistry()
        put(registry, "Npu")
        with pytest.raises((NotLiveError, UnknownDeviceError)):
            registry.add_devices(DeviceOptions(), "")
        put(registry, "Hot", device_type="CPU", answer=Liveness("broken", reason="it overheated"))
        with pytest.raises(NotLiveError, match="overheated"):
            DeviceMgr.create(registry=registry)

    def test_options_say_which(self, registry: FactoryRegistry) -> None:
        put(registry, "Npu", count=4)
        put(registry, "Tpu", device_type="TPU", count=2)

        def made(**options: Any) -> list[str]:
            return labels(registry.add_devices(DeviceOptions(**options), LOCAL_TASK))

        assert made(visible={"NPU": (3, 1), "TPU": ()}) == ["CPU:0", "NPU:1", "NPU:3"]
        assert made(device_count={"NPU": 1, "TPU": 0}) == ["CPU:0", "NPU:0"]
        assert made(visible={"NPU": (2, 3)}, device_count={"NPU": 1}, filters=("NPU:2",)) == [
            "CPU:0",
            "NPU:2",
        ]
        assert made(filters=("/device:TPU:*",)) == ["CPU:0", "TPU:0", "TPU:1"]
        assert made(filters=("/job:elsewhere",)) == ["CPU:0"]

    def test_the_live_frameworks_are_handed_on(self, registry: FactoryRegistry) -> None:
        answer = Liveness(
            "live",
            "ran",
            frameworks={"torch": Liveness("live", "ran"), "onnx": Liveness("broken")},
        )
        put(registry, "Npu", frameworks=("torch", "onnx"), answer=answer)
        assert registry.new_device("NPU", DeviceOptions(), "").frameworks == {"torch"}
        only = DeviceOptions(frameworks=("onnx",))
        with pytest.raises(NotLiveError):
            registry.new_device("NPU", only, "")
        assert labels(registry.add_devices(only, "")) == ["CPU:0"]

    def test_one_device_of_a_type(self, registry: FactoryRegistry) -> None:
        put(registry, "Npu", count=3)
        assert labels([registry.new_device("NPU", DeviceOptions(), "")]) == ["NPU:0"]
        assert host_device(registry, LOCAL_TASK).name == f"{LOCAL_TASK}/device:CPU:0"
        with pytest.raises(UnknownDeviceError):
            registry.new_device("TPU", DeviceOptions(), "")

    def test_a_host_that_is_known_only_once_it_was_probed(self) -> None:
        class Plain(DeviceFactory):
            def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
                return [Device(f"{name_prefix}/device:CPU:0")]

        empty = FactoryRegistry()
        empty.register_class("CPU", Plain)
        assert host_device(empty, LOCAL_TASK).name == f"{LOCAL_TASK}/device:CPU:0"

    def test_some_take_part_only_when_they_are_named(self, registry: FactoryRegistry) -> None:
        factory = type("Software", (FakeFactory,), {"device_type": "GPU"})
        registry.register(Registration("GPU", factory, 40, "test", "Software", only_named=True))
        assert labels(registry.add_devices(DeviceOptions(), "")) == ["CPU:0"]
        named = DeviceOptions(filters=("GPU:0",))
        assert labels(registry.add_devices(named, "")) == ["CPU:0", "GPU:0"]

    @pytest.mark.parametrize("has_gpu", [True, False])
    def test_some_wait_for_a_class_of_devices(
        self, has_gpu: bool, registry: FactoryRegistry
    ) -> None:
        locked = type("PageLocked", (Host,), {"__module__": __name__})
        registry.register(Registration("CPU", locked, 70, "test", "PageLocked", after_class="GPU"))
        if has_gpu:
            put(registry, "Gpu", device_type="CUDA", device_class="GPU")
        host, *_ = registry.add_devices(DeviceOptions(), "")
        assert host.priority == (70 if has_gpu else 60)
        assert not host.gone
        assert type(registry.get_factory("CPU")).__name__ == "Host"


class Careless(FakeFactory):
    """Promises devices, and does not make them right."""

    device_type = "NPU"
    priority: int | None = 300

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        made: Any = self.make(name_prefix)
        return made  # type: ignore[no-any-return]

    def make(self, prefix: str) -> Any:
        raise NotImplementedError


def raises(prefix: str) -> Any:
    msg = "the driver was unloaded"
    raise OSError(msg)


BAD: dict[str, Callable[[str], Any]] = {
    "raises": raises,
    "makes none": lambda prefix: [],
    "makes nonsense": lambda prefix: ["NPU:0"],
    "returns nothing": lambda prefix: None,
    "makes another type": lambda prefix: [Device(f"{prefix}/device:TPU:0")],
    "makes one twice": lambda prefix: [Device(f"{prefix}/device:NPU:0") for _ in range(2)],
    "makes a bad name": lambda prefix: [Device("NPU zero")],
}


class TestCareless:
    @pytest.mark.parametrize("how", BAD)
    def test_the_next_live_one_makes_the_devices(self, how: str, registry: FactoryRegistry) -> None:
        put(registry, "Careless", base=Careless, make=staticmethod(BAD[how]))
        put(registry, "Spare", priority=1)
        manager = DeviceMgr.create(registry=registry)
        assert labels(manager) == ["CPU:0", "NPU:0"]
        assert manager.lookup_device("npu").priority == 1

    def test_it_is_not_called_live_any_more_and_the_ledger_says_so(
        self, registry: FactoryRegistry
    ) -> None:
        put(registry, "Careless", base=Careless, make=staticmethod(raises))
        put(registry, "Spare", priority=1)
        assert type(registry.get_factory("NPU")).__name__ == "Careless"
        before = default_ledger().total
        registry.add_devices(DeviceOptions(), "")
        assert default_ledger().total == before + 1
        states = {each.registration.entry_name: each for each in registry.explain("NPU")}
        assert states["Careless"].liveness.state == "broken"
        assert "the driver was unloaded" in states["Careless"].liveness.reason
        assert states["Careless"].priority == 300
        assert type(registry.get_factory("NPU")).__name__ == "Spare"

    def test_kernels_that_fail_count_as_well(self, registry: FactoryRegistry) -> None:
        def kernels(self: FakeFactory) -> Iterable[Kernel]:
            raise OSError

        put(registry, "Careless", kernels=kernels, priority=2)
        assert labels(DeviceMgr.create(registry=registry)) == ["CPU:0"]

    def test_a_gpu_that_was_lost_costs_only_itself(self, registry: FactoryRegistry) -> None:
        Device("/device:NPU:7", physical_id="fake-1").lose("it fell off the bus")
        try:
            put(registry, "Npu", count=3)
            assert labels(DeviceMgr.create(registry=registry)) == ["CPU:0", "NPU:0", "NPU:2"]
        finally:
            from devicecore.device.lost_gpus import gpus_of_process

            del gpus_of_process()._lost["fake-1"]


class TestUnruly:
    """Factories of another distribution, each probed in a child of its own."""

    @pytest.fixture(autouse=True)
    def _on_the_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(UNRULY)

    def register(self, registry: FactoryRegistry, *names: str) -> None:
        for name in names:
            registry.register(Registration("UNRULY", f"unruly:{name}", None, "unruly", name))

    def test_each_costs_only_itself(
        self, registry: FactoryRegistry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DEVICECORE_PROBE_TIMEOUT", "10")
        self.register(
            registry, "Raises", "Crashes", "Exits", "ReturnsNonsense", "StatesAWordAsPriority"
        )
        self.register(registry, "RaisesWhenBuilt", "NoSuchClass", "Hangs", "WellBehaved")
        put(registry, "Npu")
        manager = DeviceMgr.create(registry=registry)
        assert set(labels(manager)) == {"CPU:0", "NPU:0", "UNRULY:0"}
        states = {
            each.registration.entry_name: each.liveness.state for each in registry.explain("UNRULY")
        }
        assert states.pop("Hangs") == "timed_out"
        assert states.pop("WellBehaved") == "live"
        assert set(states.values()) == {"broken"}
        assert manager.lookup_device("unruly").priority == 300

    def test_they_are_probed_at_the_same_time(
        self, registry: FactoryRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UNRULY_PID_FILE", str(tmp_path / "meeting"))
        monkeypatch.setenv("DEVICECORE_PROBE_TIMEOUT", "60")
        for number in (1, 2):
            registry.register(
                Registration(f"UNRULY{number}", "unruly:MeetsTheOther", 1, "unruly", str(number))
            )
        found = registry.explain(deep=True)
        assert [
            each.liveness.state for each in found if each.registration.device_type != "CPU"
        ] == [
            "live",
            "live",
        ]


class Meddler(FakeFactory):
    """Asks and changes the registry from another thread, and waits for that thread."""

    device_type = "NPU"
    meddled: FactoryRegistry
    finished: list[str]

    def meddle(self, when: str) -> None:
        def work() -> None:
            put(self.meddled, f"Added{when}", device_type="TPU")
            self.meddled.device_types  # noqa: B018 - asking is what is tried
            self.meddled.explain("TPU")
            self.finished.append(when)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)

    def __init__(self) -> None:
        self.meddle("Built")

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        self.meddle("Probed")
        return super().probe(framework, deep=deep)

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        self.meddle("Created")
        return super().create_devices(options, name_prefix)

    def kernels(self) -> Iterable[Kernel]:
        self.meddle("Kernels")
        return super().kernels()


def test_no_factory_is_called_with_a_lock_held(registry: FactoryRegistry) -> None:
    finished: list[str] = []
    put(registry, "Meddler", base=Meddler, meddled=registry, finished=finished, priority=9)
    assert "NPU:0" in labels(DeviceMgr.create(registry=registry))
    assert {"Built", "Probed", "Created", "Kernels"} <= set(finished)
