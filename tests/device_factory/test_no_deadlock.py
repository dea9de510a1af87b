"""Calls that wait inside each other, devices that close each other, and what must not pile up."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from devicecore.device import Device
from devicecore.device.lost_gpus import gpus_of_process
from devicecore.device_factory import DeviceFactory, DeviceOptions, FactoryRegistry
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import NoKernelError, NotLiveError, UnknownDeviceError
from devicecore.kernels import KernelRegistry
from devicecore.liveness import Liveness, PhysicalDevice

PATIENCE_S = 60.0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("depth", [33, 200, 500])
def test_calls_that_wait_inside_each_other_end(threads: int, depth: int) -> None:
    devices = [Device(f"/device:NPU:{index}", threads=threads) for index in range(2)]

    def nested(device: Device, left: int) -> int:
        other = devices[left % 2]
        return 1 + other.compute_async(nested, left - 1).result(PATIENCE_S) if left else 0

    assert devices[0].compute_async(nested, depth).result(PATIENCE_S) == depth
    for device in devices:
        device.close()


def test_kernels_that_close_each_others_devices_end() -> None:
    one, two = Device("/device:NPU:0", threads=1), Device("/device:NPU:1", threads=1)
    both = threading.Barrier(2)

    def close(_: Device, other: Device) -> str:
        both.wait(PATIENCE_S)
        other.close()
        return "closed"

    futures = [one.compute_async(close, two), two.compute_async(close, one)]
    assert [future.result(PATIENCE_S) for future in futures] == ["closed"] * 2
    assert one.gone
    assert two.gone


def test_gpus_that_nobody_has_are_forgotten() -> None:
    before = len(gpus_of_process()._gpus)
    for number in range(1000):
        Device("/device:NPU:0", physical_id=f"GPU-{number}")
    gc.collect()
    assert len(gpus_of_process()._gpus) == before


def test_a_device_of_another_process_computes_nothing_here() -> None:
    far = Device("/job:worker/device:NPU:0", is_local=False)
    with pytest.raises(NotLiveError, match="in another process"):
        far.compute(lambda _: 1)
    with pytest.raises(NotLiveError, match="in another process"):
        far.compute_async(lambda _: 1).result(PATIENCE_S)
    near = Device("/job:localhost/device:CPU:0")
    manager = DeviceMgr([near, far])
    assert manager.compute(lambda device: device) is near
    with pytest.raises(NoKernelError, match="in another process"):
        manager.compute(lambda device: device, policy=f"require:{far.name}")


def test_a_device_class_may_reach_other_processes() -> None:
    class Remote(Device):
        computes_elsewhere = True

    far = Remote("/job:worker/device:NPU:0", is_local=False)
    assert DeviceMgr([far]).compute(lambda device: device) is far


def test_counts_follow_every_change() -> None:
    npus = [Device(f"/device:NPU:{index}", device_class="NPU") for index in range(3)]
    cpu = Device("/device:CPU:0")
    odd = Device("/device:Odd:0", device_class="GPU", physical_id="a")
    same = Device("/device:Odd:1", device_class="GPU", physical_id="a")
    manager = DeviceMgr([cpu])
    assert [manager.num_device_type(name) for name in ("NPU", "GPU", "Odd")] == [0, 0, 0]
    manager.add_devices([*npus, odd, same])
    names = ("NPU", "GPU", "Odd", "odd", "CPU", "cpu", "none")
    assert [manager.num_device_type(name) for name in names] == [3, 1, 2, 2, 1, 1, 0]
    manager.remove_devices([npus[0], odd])
    assert [manager.num_device_type(name) for name in names] == [2, 1, 1, 1, 1, 1, 0]


class Host(DeviceFactory):
    device_type = "CPU"
    priority = 60

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran", devices=(PhysicalDevice("CPU", 0, device_class="CPU"),))

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> list[Device]:
        count = options.device_count.get("CPU", 1)
        return [Device(f"{name_prefix}/device:CPU:{index}") for index in range(count)]


class Gpus(DeviceFactory):
    """Three GPUs, as no machine of these tests has them."""

    device_type = "AcmeGpu"
    priority = 200

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        gpus = (PhysicalDevice("AcmeGpu", index, f"GPU-{index}") for index in range(3))
        return Liveness("live", "ran", devices=tuple(gpus))

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> list[Device]:
        return [
            Device(
                f"{name_prefix}/device:AcmeGpu:{gpu.index}",
                device_class="GPU",
                physical_id=gpu.physical_id,
            )
            for gpu in options.chosen("AcmeGpu", options.physical)
        ]


@pytest.fixture
def gpus(cache_dir: Path) -> FactoryRegistry:
    registry = FactoryRegistry()
    for factory in (Host, Gpus):
        registry.register_class(factory.device_type, factory)
    return registry


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (DeviceOptions(), [0, 1, 2]),
        (DeviceOptions(visible={"acmegpu": (0, 2)}), [0, 2]),
        (DeviceOptions(visible={"GPU": (1,)}), [1]),
        (DeviceOptions(visible={"gpu": ()}), []),
        (DeviceOptions(device_count={"GPU": 0}), []),
        (DeviceOptions(device_count={"gpu": 2}), [0, 1]),
        (DeviceOptions(device_count={"ACMEGPU": 1}), [0]),
        (DeviceOptions(visible={"gpu": (1, 2)}, device_count={"GPU": 1}), [1]),
        (DeviceOptions(visible={"cuda": (0,)}, device_count={"NPU": 0}), [0, 1, 2]),
        (DeviceOptions(filters=("gpu",)), [0, 1, 2]),
        (DeviceOptions(filters=("acmegpu:1",)), [1]),
    ],
)
def test_options_count_by_type_or_class_in_any_case(
    gpus: FactoryRegistry, options: DeviceOptions, expected: list[int]
) -> None:
    manager = DeviceMgr.create(options, gpus)
    found = [each.parsed_name.index for each in manager if each.device_type == "AcmeGpu"]
    assert found == expected
    assert manager.host_cpu


def test_the_host_is_counted_in_any_case(gpus: FactoryRegistry) -> None:
    manager = DeviceMgr.create(DeviceOptions(device_count={"cpu": 3}), gpus)
    assert manager.num_device_type("CPU") == 3


@pytest.mark.parametrize(
    "options",
    [
        DeviceOptions(visible={"CUDDA": (0,), "GPU": (0,)}),
        DeviceOptions(device_count={"cudda": 0}),
        DeviceOptions(visible={"CUDDA": (0,)}, device_count={"Gppu": 1}),
    ],
)
def test_unknown_types_in_options_are_one_error(
    gpus: FactoryRegistry, options: DeviceOptions
) -> None:
    with pytest.raises(UnknownDeviceError, match="may mean 'CUDA'") as caught:
        DeviceMgr.create(options, gpus)
    if "Gppu" in options.device_count:
        assert "may mean 'GPU'" in str(caught.value)
    with pytest.raises(UnknownDeviceError, match="may mean"):
        gpus.new_device("AcmeGpu", options, "")


IMPORTS = """
import sys
sys.path.insert(0, {tests!r})
from interrupting import interrupted
import devicecore.kernels
from devicecore.kernels import default_kernels
import cv2, torch
kernels = ("devicecore.cv.native", "devicecore.cv.torch_kernels")
def run():
    default_kernels()._loaded.clear()
    for name in kernels:
        sys.modules.pop(name, None)
    default_kernels().find("cv2.resize")
run()
def state():
    failures = default_kernels().load_failures("cv2.resize")
    find, operations = default_kernels().find, default_kernels().operations()
    return failures, {{op: len(find(op)) for op in operations}}
expected = state()
assert not expected[0], expected[0]
for number in interrupted(run, *kernels, "devicecore.kernels", every={every}):
    default_kernels().find("cv2.resize")
    assert state() == expected, number
print("whole", number)
"""


def test_kernels_are_whole_after_an_interrupt_while_they_register() -> None:
    pytest.importorskip("cv2")
    pytest.importorskip("torch")
    code = IMPORTS.format(tests=str(Path(__file__).parents[1]), every=9973)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("whole"), done.stderr


def test_two_kernels_of_one_module_still_clash() -> None:
    from devicecore.errors import RegistrationError
    from devicecore.kernels import Kernel

    registry = KernelRegistry()
    registry.register(Kernel("a.b", lambda _: 1, device_type="NPU"))
    with pytest.raises(RegistrationError):
        registry.register(Kernel("a.b", lambda _: 2, device_type="NPU"))


def test_only_public_names_are_listed() -> None:
    import devicecore

    devicecore.Device  # noqa: B018 - what was used is kept in the module
    assert set(dir(devicecore)) == {*devicecore.__all__, "__version__"}
