"""`DeviceMgr`: adding, removing and finding devices, with GPUs that are only described here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device_factory import DeviceFactory, DeviceOptions, FactoryRegistry, Registration
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import (
    DeviceConflictError,
    DeviceGoneError,
    HostCpuError,
    InvalidDeviceNameError,
    UnknownDeviceError,
)
from devicecore.liveness import Liveness
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = "/job:w/replica:0/task:0"
PRIORITIES = {"CUDA": 200, "TENSORRT": 198, "ROCM": 194, "OPENVINO": 190, "CPU": 60}


@pytest.fixture
def registry() -> FactoryRegistry:
    """Return priorities; none of these factories is ever imported."""
    made = FactoryRegistry()
    for device_type, priority in PRIORITIES.items():
        made.register(Registration(device_type, "never:Imported", priority, "test", device_type))
    return made


@pytest.fixture
def manager(registry: FactoryRegistry) -> DeviceMgr:
    return DeviceMgr(registry=registry)


def device(name: str, task: str = TASK, **fields: Any) -> Device:
    return Device(f"{task}/device:{name}", **fields)


def add(manager: DeviceMgr, *names: str, task: str = TASK) -> list[Device]:
    added = [device(name, task) for name in names]
    manager.add_devices(added)
    return added


def names(manager: DeviceMgr) -> list[str]:
    return [str(each.parsed_name.local).removeprefix("/device:") for each in manager]


class TestAdding:
    def test_devices_are_listed_by_name(self, manager: DeviceMgr) -> None:
        add(manager, "GPU:10", "CPU:0", "GPU:2")
        assert names(manager) == ["CPU:0", "GPU:2", "GPU:10"]
        assert len(manager) == manager.num_devices == 3
        assert [each.name for each in manager.list_device_attributes()] == [
            each.name for each in manager.list_devices()
        ]

    @pytest.mark.parametrize("bad", ["CPU:0", "cpu:0", "GPU:7", "mynpu:0", "MYNPU:0"])
    def test_it_is_all_or_nothing(self, bad: str, manager: DeviceMgr) -> None:
        add(manager, "CPU:0", "MyNPU:0")
        before = manager.list_devices()
        new = [device(name) for name in ("GPU:7", "GPU:8", bad)]
        with pytest.raises(DeviceConflictError):
            manager.add_devices(new)
        assert manager.list_devices() == before
        for each in new:
            assert not manager.contains_device(each.attributes.incarnation)
        with pytest.raises(UnknownDeviceError):
            manager.lookup_device("GPU:8")
        manager.add_devices(new[:2])
        assert len(manager) == 4

    def test_a_type_that_differs_only_by_case_is_named(self, manager: DeviceMgr) -> None:
        add(manager, "MyNPU:0")
        with pytest.raises(DeviceConflictError, match=f"{TASK}/device:MyNPU:0 only by case"):
            add(manager, "mynpu:0")

    def test_the_same_device_twice_is_refused(self, manager: DeviceMgr) -> None:
        gpu = device("GPU:0")
        with pytest.raises(DeviceConflictError):
            manager.add_devices([gpu, gpu])
        manager.add_devices([gpu])
        with pytest.raises(DeviceConflictError):
            manager.add_devices([gpu])

    def test_a_device_that_is_gone_is_refused(self, manager: DeviceMgr) -> None:
        gpu = device("GPU:0")
        gpu.close()
        with pytest.raises(DeviceConflictError, match="closed"):
            manager.add_devices([gpu])
        assert len(manager) == 0

    def test_a_manager_is_made_with_devices_or_not_at_all(self, registry: FactoryRegistry) -> None:
        assert len(DeviceMgr([device("CPU:0"), device("CPU:1")], registry=registry)) == 2
        with pytest.raises(DeviceConflictError):
            DeviceMgr([device("CPU:0"), device("CPU:0")], registry=registry)

    def test_devices_may_come_from_a_generator(self, manager: DeviceMgr) -> None:
        manager.add_devices(device(f"CPU:{index}") for index in range(3))
        manager.remove_devices(each for each in manager.list_devices() if each.name[-1] == "2")
        assert names(manager) == ["CPU:0", "CPU:1"]


class TestRemoving:
    def test_a_removed_device_is_gone(self, manager: DeviceMgr) -> None:
        _, gpu = add(manager, "CPU:0", "GPU:0")
        manager.remove_devices([gpu])
        assert gpu not in manager
        assert not manager.contains_device(gpu.attributes.incarnation)
        with pytest.raises(DeviceGoneError, match="removed from its manager"):
            gpu.compute(lambda device: 1)
        for alias in gpu.parsed_name.aliases:
            with pytest.raises(UnknownDeviceError):
                manager.lookup_device(alias)

    def test_any_name_will_do(self, manager: DeviceMgr) -> None:
        add(manager, "CPU:0", "GPU:0", "GPU:1", "MyNPU:0", "GPU:2")
        manager.remove_devices(["GPU:0", f"{TASK}/gpu:1", "mynpu:0", DeviceName.parse("GPU:2")])
        assert names(manager) == ["CPU:0"]

    def test_it_is_all_or_nothing(self, manager: DeviceMgr) -> None:
        _, gpu, other = add(manager, "CPU:0", "GPU:0", "GPU:1")
        stranger = device("GPU:0")
        cases: list[tuple[list[Device | str | DeviceName], type[Exception]]] = [
            ([gpu, "GPU:9"], UnknownDeviceError),
            ([gpu, stranger], UnknownDeviceError),
            ([gpu, "CPU:0"], HostCpuError),
            ([gpu, other, gpu], DeviceConflictError),
            ([gpu, f"{TASK}/gpu:0"], DeviceConflictError),
        ]
        for removed, error in cases:
            with pytest.raises(error):
                manager.remove_devices(removed)
            assert names(manager) == ["CPU:0", "GPU:0", "GPU:1"]
            assert gpu.compute(lambda device: 1) == 1

    def test_another_device_of_the_same_name_does_not_count(self, manager: DeviceMgr) -> None:
        (gpu,) = add(manager, "GPU:0")
        with pytest.raises(UnknownDeviceError, match="not in this manager"):
            manager.remove_devices([device("GPU:0")])
        assert gpu in manager

    def test_the_host_cpu_stays_as_long_as_others_do(self, manager: DeviceMgr) -> None:
        host, second = add(manager, "CPU:0", "CPU:1")
        with pytest.raises(HostCpuError) as caught:
            manager.remove_devices([host])
        assert caught.value.name == host.name
        assert host in manager
        manager.remove_devices([second])
        manager.remove_devices([host])
        assert len(manager) == 0

    def test_the_host_cpu_may_go_with_all_others(self, manager: DeviceMgr) -> None:
        add(manager, "CPU:0", "GPU:0")
        manager.remove_devices(manager.list_devices())
        assert len(manager) == 0

    def test_it_stays_even_if_nobody_asked_for_it_before(self, manager: DeviceMgr) -> None:
        add(manager, "GPU:0")
        host, _ = add(manager, "CPU:0", "CPU:1")
        with pytest.raises(HostCpuError):
            manager.remove_devices([host])

    def test_the_host_cpu_is_the_first_cpu_0_of_all_tasks(self, manager: DeviceMgr) -> None:
        def host() -> str:
            return manager.host_cpu.name if manager.host_cpu else ""

        add(manager, "CPU:1")
        assert host() == ""
        add(manager, "CPU:0", task="/job:b/replica:0/task:0")
        assert host() == "/job:b/replica:0/task:0/device:CPU:0"
        add(manager, "CPU:0", task="/job:a/replica:0/task:7")
        assert host() == "/job:a/replica:0/task:7/device:CPU:0"

    def test_a_name_is_free_again(self, manager: DeviceMgr) -> None:
        (old,) = add(manager, "GPU:0")
        manager.remove_devices([old])
        (new,) = add(manager, "GPU:0")
        assert manager.lookup_device("GPU:0") is new
        assert new.attributes.incarnation != old.attributes.incarnation
        assert not manager.contains_device(old.attributes.incarnation)
        (other_case,) = add(manager, "MyNPU:0")
        manager.remove_devices([other_case])
        add(manager, "mynpu:0")

    def test_closing_closes_all(self, manager: DeviceMgr) -> None:
        added = add(manager, "CPU:0", "GPU:0")
        manager.close()
        manager.close()
        assert len(manager) == 0
        assert all(each.gone for each in added)
        with pytest.raises(UnknownDeviceError):
            manager.lookup_device("CPU:0")


class TestSharedNames:
    """``GPU:0`` of two tasks: the last one added answers, and then the one before."""

    def test_the_next_owner_takes_over(self, manager: DeviceMgr) -> None:
        tasks = [f"/job:w/replica:0/task:{number}" for number in range(3)]
        first, second, third = (add(manager, "GPU:0", task=task)[0] for task in tasks)
        assert manager.lookup_device("GPU:0") is third
        manager.remove_devices([third])
        assert manager.lookup_device("GPU:0") is second
        manager.remove_devices([first])
        assert manager.lookup_device("/device:GPU:0") is second
        (again,) = add(manager, "GPU:0", task=tasks[0])
        assert manager.lookup_device("GPU:0") is again
        manager.remove_devices([again, second])
        with pytest.raises(UnknownDeviceError):
            manager.lookup_device("GPU:0")

    def test_a_device_never_loses_its_own_name(self, manager: DeviceMgr) -> None:
        local = Device("/device:GPU:0")
        manager.add_devices([local])
        (remote,) = add(manager, "GPU:0")
        assert manager.lookup_device("/device:GPU:0") is local
        assert manager.lookup_device(remote.name) is remote
        manager.remove_devices([local])
        assert manager.lookup_device("/device:GPU:0") is remote

    def test_thousands_of_owners_come_and_go(self, manager: DeviceMgr) -> None:
        devices = [device("GPU:0", f"/job:w/replica:0/task:{number}") for number in range(1000)]
        manager.add_devices(devices)
        manager.remove_devices(devices[1:])
        assert manager.lookup_device("GPU:0") is devices[0]


class TestLookingUp:
    @pytest.mark.parametrize(
        "name",
        [
            f"{TASK}/device:CUDA:1",
            f"{TASK}/cuda:1",
            "/device:CUDA:1",
            "CUDA:1",
            "cuda:1",
            "/cuda:1",
            "/device:cuda:1",
            "/task:0/device:CUDA:1",
            "/task:0/job:w/replica:0/device:CUDA:1",
            DeviceName(device_type="CUDA", index=1),
        ],
        ids=repr,
    )
    def test_every_way_to_write_a_name(self, name: str | DeviceName, manager: DeviceMgr) -> None:
        add(manager, "CPU:0", "CUDA:0", "CUDA:1")
        assert manager.lookup_device(name).name == f"{TASK}/device:CUDA:1"
        assert name in manager

    def test_types_of_the_devices_at_hand_count_in_any_case(self, manager: DeviceMgr) -> None:
        (npu,) = add(manager, "MyNPU:3")
        for name in ("MyNPU:3", "mynpu:3", "MYNPU", "/device:mynpu:3", "/job:w/device:MyNpU:3"):
            assert manager.lookup_device(name) is npu
        with pytest.raises(UnknownDeviceError):
            manager.lookup_device("YourNPU:3")

    def test_an_absent_index_means_the_first(self, manager: DeviceMgr) -> None:
        add(manager, "CUDA:2", "CUDA:10")
        assert manager.lookup_device("cuda").parsed_name.index == 2
        assert manager.lookup_device("CUDAExecutionProvider").parsed_name.index == 2
        assert manager.lookup_device("").parsed_name.index == 2

    def test_patterns_find_all(self, manager: DeviceMgr) -> None:
        add(manager, "CPU:0", "CUDA:0", "CUDA:1")
        add(manager, "CUDA:0", task="/job:w/replica:0/task:1")
        assert len(manager.find_devices("cuda")) == 3
        assert len(manager.find_devices("/task:0/device:CUDA:*")) == 2
        assert len(manager.find_devices("/device:*:0")) == 3
        assert len(manager.find_devices("")) == 4
        assert manager.find_devices("/job:other") == []
        with pytest.raises(InvalidDeviceNameError):
            manager.find_devices("/job:")

    def test_an_unknown_name_lists_what_there_is(self, manager: DeviceMgr) -> None:
        add(manager, "CPU:0", "CUDA:0")
        with pytest.raises(UnknownDeviceError) as caught:
            manager.lookup_device("cuda:4")
        assert caught.value.known == ("/device:CPU:0", "/device:CUDA:0")
        assert "did you mean 'CUDA:0'?" in str(caught.value)

    def test_a_name_that_is_none_says_why(self, manager: DeviceMgr) -> None:
        with pytest.raises(UnknownDeviceError, match="has a blank"):
            manager.lookup_device("CUDA 0")

    def test_why_a_type_is_missing(self) -> None:
        class Broken(DeviceFactory):
            device_type = "CUDA"
            priority: int | None = 200

            def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
                return Liveness("broken", reason="the driver is too old")

            def create_devices(self, options: DeviceOptions, name_prefix: str) -> list[Device]:
                return []

        registry = FactoryRegistry()
        registry.register_class("CUDA", Broken)
        registry.explain(deep=True)
        manager = DeviceMgr([device("CPU:0")], registry=registry)
        with pytest.raises(UnknownDeviceError, match="CUDA is broken: the driver is too old"):
            manager.lookup_device("cuda:0")
        with pytest.raises(UnknownDeviceError) as caught:
            manager.lookup_device("rocm")
        assert caught.value.why == ""

    def test_membership_never_raises(self, manager: DeviceMgr) -> None:
        (cpu,) = add(manager, "CPU:0")
        assert cpu in manager
        assert device("CPU:0") not in manager
        for nothing in ("GPU:0", "not a name", DeviceName("x"), 3, None, b"CPU:0", ["CPU:0"]):
            assert nothing not in manager

    def test_strings_for_a_person(self, manager: DeviceMgr) -> None:
        manager.add_devices([device("CUDA:0", description="NVIDIA H200"), device("CPU:0")])
        assert manager.debug_string() == f"{TASK}/device:CPU:0\n{TASK}/device:CUDA:0"
        assert manager.device_mapping_string() == f"{TASK}/device:CUDA:0 -> NVIDIA H200"
        assert "2" in repr(manager)

    def test_containers_are_cleared(self, manager: DeviceMgr) -> None:
        (cpu,) = add(manager, "CPU:0")
        for container in ("localhost", "models"):
            cpu.resource_mgr.lookup_or_create(container, "x", object)
        manager.clear_containers()
        assert cpu.resource_mgr.containers() == {"models": 1}
        manager.clear_containers(["models"])
        assert cpu.resource_mgr.containers() == {}


def test_a_forked_child_is_not_locked_out(manager: DeviceMgr, in_fork: Callable[..., Any]) -> None:
    add(manager, "CPU:0")

    def child() -> list[str]:
        add(manager, "CPU:1")
        manager.remove_devices(["CPU:1"])
        add(manager, "CPU:2")
        return names(manager)

    with manager._lock:
        assert in_fork(child) == ["CPU:0", "CPU:2"]
    assert names(manager) == ["CPU:0"]
