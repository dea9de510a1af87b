"""`DeviceSet`: TensorFlow's ordering rules, without its aborts."""

from __future__ import annotations

import pytest

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry, Registration
from devicecore.device_set import DeviceSet
from devicecore.errors import DeviceConflictError, InvalidDeviceNameError
from devicecore.names import DeviceName

TASK = "/job:a/replica:0/task:0"


@pytest.fixture
def registry() -> FactoryRegistry:
    """Return priorities; none of these factories is ever imported."""
    made = FactoryRegistry()
    for device_type, priority in {"GPU": 200, "SYCL": 200, "CPU": 60, "LAST": -5}.items():
        made.register(Registration(device_type, "never:Imported", priority, "test", device_type))
    return made


@pytest.fixture
def devices(registry: FactoryRegistry) -> DeviceSet:
    return DeviceSet(registry=registry)


def add(devices: DeviceSet, name: str, *, is_local: bool = True) -> Device:
    device = Device(name, is_local=is_local)
    devices.add_device(device)
    return device


def test_devices_stay_in_the_order_in_which_they_came(devices: DeviceSet) -> None:
    added = [add(devices, f"{TASK}/device:{name}") for name in ("ZZZ:0", "CPU:0", "GPU:1")]
    assert devices.devices == tuple(added)
    assert len(devices) == 3
    assert "3" in repr(devices)
    assert DeviceSet(added).devices == devices.devices


def test_of_two_with_one_name_the_first_is_found(devices: DeviceSet) -> None:
    first, second = (add(devices, f"{TASK}/device:GPU:0") for _ in range(2))
    assert devices.devices == (first, second)
    assert devices.find_device_by_name(f"{TASK}/device:GPU:0") is first


def test_only_full_names_find_a_device(devices: DeviceSet) -> None:
    device = add(devices, f"{TASK}/device:GPU:1")
    assert devices.find_device_by_name(f"{TASK}/device:GPU:1") is device
    assert devices.find_device_by_name(f"{TASK}/gpu:1") is device
    for name in ("/device:GPU:1", "GPU:1", f"{TASK}/device:GPU:2", "", "nonsense"):
        assert devices.find_device_by_name(name) is None


def test_a_pattern_finds_what_sets_all_its_parts(devices: DeviceSet) -> None:
    gpu1, cpu, gpu0 = (
        add(devices, f"{TASK}/device:{name}") for name in ("GPU:1", "CPU:0", "GPU:0")
    )
    assert devices.find_matching_devices("") == (gpu1, cpu, gpu0)
    assert devices.find_matching_devices("/gpu:*") == (gpu1, gpu0)
    assert devices.find_matching_devices(DeviceName(index=0)) == (cpu, gpu0)
    assert devices.find_matching_devices("/job:b") == ()
    with pytest.raises(InvalidDeviceNameError):
        devices.find_matching_devices("/job:")


def test_a_partial_device_is_no_reason_to_abort(devices: DeviceSet) -> None:
    partial = add(devices, "/device:GPU:0")
    full = add(devices, f"{TASK}/device:GPU:0")
    assert devices.find_matching_devices("/device:GPU:0") == (partial, full)
    assert devices.find_matching_devices("/job:a") == (full,)


def test_what_a_pattern_found_is_forgotten_when_a_device_comes(devices: DeviceSet) -> None:
    assert devices.find_matching_devices("/gpu:*") == ()
    gpu = add(devices, f"{TASK}/device:GPU:0")
    assert devices.find_matching_devices("/gpu:*") == (gpu,)


def test_patterns_without_end_take_no_memory_without_end(devices: DeviceSet) -> None:
    for task in range(10_000):
        devices.find_matching_devices(DeviceName(task=task))
    assert len(devices._matches) <= 4096


def test_the_client_device_is_set_once(devices: DeviceSet) -> None:
    assert devices.client_device is None
    stranger = Device(f"{TASK}/device:CPU:7")
    with pytest.raises(DeviceConflictError, match="must be in the set"):
        devices.client_device = stranger
    cpu, gpu = (add(devices, f"{TASK}/device:{name}") for name in ("CPU:0", "GPU:0"))
    devices.client_device = cpu
    with pytest.raises(DeviceConflictError, match="is the client device"):
        devices.client_device = gpu
    assert devices.client_device is cpu


def test_types_are_ordered_by_priority_then_by_name(devices: DeviceSet) -> None:
    for name in ("LAST:0", "ZZZ:0", "SYCL:0", "CPU:0", "GPU:0", "AAA:0", "GPU:1"):
        add(devices, f"{TASK}/device:{name}")
    assert devices.prioritized_device_types == (
        ("GPU", 200),
        ("SYCL", 200),
        ("CPU", 60),
        ("AAA", -1),
        ("ZZZ", -1),
        ("LAST", -5),
    )


def test_devices_are_ordered_by_priority_type_distance_and_name(devices: DeviceSet) -> None:
    remote = add(devices, "/job:a/replica:0/task:1/device:GPU:0", is_local=False)
    late = add(devices, "/job:a/replica:0/task:2/device:GPU:10")
    early = add(devices, "/job:a/replica:0/task:2/device:GPU:2")
    sycl = add(devices, f"{TASK}/device:SYCL:0")
    cpu = add(devices, f"{TASK}/device:CPU:0")
    assert devices.prioritized_devices == (
        (early, 200),
        (late, 200),
        (remote, 200),
        (sycl, 200),
        (cpu, 60),
    )
