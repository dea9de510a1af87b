"""Processes: values pickle, a forked child computes at once, and what it inherited dead says so."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device, DeviceAttributes, DeviceLocality
from devicecore.device_factory import DeviceOptions, FactoryRegistry, Registration
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import DeviceGoneError, NoKernelError
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.ledger import Move, default_ledger
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S = 60.0

VALUES = (
    DeviceName("w", 0, 1, "CUDA", 2),
    DeviceName.parse("/job:*/device:*:3"),
    DeviceName.parse("/job:*", dialect="tf-python"),
    DeviceAttributes("/device:CUDA:0", "CUDA", 2**40, DeviceLocality("0000:3b:00.0", 1, ("a",))),
    PhysicalDevice("CUDA", 0, "GPU-1", details={"compute_capability": "9.0"}),
    Liveness("live", "ran", frameworks={"torch": Liveness("broken", reason="no")}),
    SessionSpec("CUDAExecutionProvider", {"device_id": "1"}, library="/opt/libep.so"),
    DeviceOptions({"CPU": 3}, {"CUDA": (0, 2)}, ("/device:CUDA:*",), frameworks=("torch",)),
    Move("op", "CUDA:0", "CPU:0", "out of memory"),
    Registration("NPU", "acme:Factory", 220, "acme", "Factory", "1.0", ">=0.1"),
    Registration("NPU", FakeFactory, 220),
    NoKernelError("op", "CPU:0", {"op for NPU": "it is for NPU"}),
)

IDS = [f"{number} {type(value).__name__}" for number, value in enumerate(VALUES)]


def echo(value: Any) -> Any:
    return value


def double(device: Device, x: int) -> int:
    return 2 * x


def compute_in_a_new_process(x: int) -> tuple[int, int]:
    from devicecore.runtime import host_cpu

    host = host_cpu()
    return host.compute(double, x), host.compute_async(double, x).result(PATIENCE_S)


class GpuDevice(Device):
    """A fake: a device whose driver's context does not survive a fork."""

    opened = True

    def was_opened_before_fork(self) -> bool:
        return self.opened


@pytest.fixture
def kernels() -> KernelRegistry:
    made = KernelRegistry()
    made.register(Kernel("double", double, "CPU"))
    return made


@pytest.fixture
def host(kernels: KernelRegistry) -> Iterator[Device]:
    made = Device("/job:localhost/replica:0/task:0/device:CPU:0", registry=kernels, threads=2)
    yield made
    made.close()


class TestPickling:
    @pytest.mark.parametrize("value", VALUES, ids=IDS)
    def test_values_pickle(self, value: Any) -> None:
        copy = pickle.loads(pickle.dumps(value))
        assert type(copy) is type(value)
        assert str(copy) == str(value)
        if not isinstance(value, Exception):
            assert copy == value

    def test_values_go_through_a_new_process(self) -> None:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            for value in VALUES:
                assert str(pool.submit(echo, value).result(PATIENCE_S)) == str(value)

    def test_a_device_does_not_pickle_and_says_what_does(self) -> None:
        with pytest.raises(TypeError, match=r"name"):
            pickle.dumps(Device("/device:CPU:0"))

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_a_new_process_has_a_host_device_of_its_own(self, method: str) -> None:
        if method not in multiprocessing.get_all_start_methods():
            pytest.skip(f"this system has no {method}")
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            assert pool.submit(compute_in_a_new_process, 21).result(PATIENCE_S) == (42, 42)


class TestFork:
    def test_the_host_computes_at_once(self, host: Device, in_fork: Callable[..., Any]) -> None:
        assert host.compute("double", 1) == 2
        assert host.compute_async("double", 1).result(PATIENCE_S) == 2

        def child() -> tuple[int, int]:
            return host.compute("double", 21), host.compute_async("double", 21).result(PATIENCE_S)

        assert in_fork(child) == (42, 42)
        assert host.compute_async("double", 2).result(PATIENCE_S) == 4

    def test_a_busy_pool_is_not_inherited(self, host: Device, in_fork: Callable[..., Any]) -> None:
        running, go_on = threading.Event(), threading.Event()

        def block(device: Device) -> None:
            running.set()
            go_on.wait(PATIENCE_S)

        calls = [host.compute_async(block) for _ in range(5)]
        assert running.wait(PATIENCE_S)
        try:
            assert in_fork(lambda: host.compute_async(double, 21).result(PATIENCE_S)) == 42
        finally:
            go_on.set()
        for call in calls:
            call.result(PATIENCE_S)

    def test_a_lock_that_was_held_is_free(
        self, host: Device, kernels: KernelRegistry, in_fork: Callable[..., Any]
    ) -> None:
        """Another thread holds every lock there is at the moment of the fork."""
        registry = FactoryRegistry()
        registry.register_class("NPU", type("Local", (FakeFactory,), {"device_type": "NPU"}))
        manager = DeviceMgr([host], registry=registry)
        locks: list[Any] = [
            host._lock,
            kernels._lock,
            manager._lock,
            registry._lock,
            default_ledger()._lock,
            host.resource_mgr._lock,
            host.op_segment._lock,
        ]
        held, release = threading.Event(), threading.Event()

        def hold() -> None:
            for lock in locks:
                lock.acquire()
            held.set()
            release.wait(PATIENCE_S)
            for lock in locks:
                lock.release()

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(PATIENCE_S)

        def child() -> int:
            kernels.register(Kernel("triple", lambda device, x: 3 * x, "CPU"))
            registry.get_factory("NPU")
            manager.add_devices([registry.new_device("NPU", DeviceOptions(), "/job:w")])
            default_ledger().record("op", "a", "b", "a fork")
            host.resource_mgr.lookup_or_create("c", "n", object)
            host.op_segment.add_hold("s")
            return int(manager.compute("triple", 14))

        try:
            assert in_fork(child) == 42
        finally:
            release.set()
            thread.join()

    def test_a_kernel_that_was_running_is_not_waited_for(
        self, host: Device, kernels: KernelRegistry, in_fork: Callable[..., Any]
    ) -> None:
        running, go_on = threading.Event(), threading.Event()

        def slow(device: Device, wait: bool) -> int:
            if wait:
                running.set()
                go_on.wait(PATIENCE_S)
            return 42

        kernels.register(Kernel("serial", slow, "CPU", thread_safe=False))
        thread = threading.Thread(target=host.compute, args=["serial", True])
        thread.start()
        assert running.wait(PATIENCE_S)
        try:
            assert in_fork(lambda: host.compute("serial", False)) == 42
        finally:
            go_on.set()
            thread.join()

    def test_a_stateful_kernel_starts_anew(
        self, host: Device, kernels: KernelRegistry, in_fork: Callable[..., Any]
    ) -> None:
        class Counter:
            def __init__(self, device: Device) -> None:
                self.calls = 0

            def __call__(self, device: Device) -> int:
                self.calls += 1
                return self.calls

        kernels.register(Kernel("count", Counter, "CPU", stateful=True))
        assert [host.compute("count") for _ in range(3)] == [1, 2, 3]
        assert in_fork(lambda: host.compute("count")) == 1
        assert host.compute("count") == 4

    def test_what_was_opened_before_is_gone_and_says_so(self, in_fork: Callable[..., Any]) -> None:
        opened, unopened = GpuDevice("/device:CUDA:0"), GpuDevice("/device:CUDA:1")
        unopened.opened = False

        def child() -> tuple[str, int]:
            try:
                opened.compute(double, 1)
            except DeviceGoneError as error:
                return str(error), unopened.compute(double, 21)
            return "it computed", 0

        message, result = in_fork(child)
        assert "opened before this process was forked" in message
        assert result == 42
        assert opened.compute(double, 21) == 42

    def test_a_manager_goes_on_with_what_is_left(
        self, host: Device, kernels: KernelRegistry, in_fork: Callable[..., Any]
    ) -> None:
        gpu = GpuDevice("/job:localhost/replica:0/task:0/device:CUDA:0", registry=kernels)
        kernels.register(Kernel("double", double, "CUDA"))
        manager = DeviceMgr([host, gpu], registry=FactoryRegistry())
        manager.rank(gpu)
        gpu.priority = 200
        assert manager.best_device("double") is gpu
        assert manager.compute("double", 1) == 2

        def child() -> tuple[str, int]:
            return manager.best_device("double").label, manager.compute("double", 21)

        assert in_fork(child) == ("CPU:0", 42)

    def test_a_grandchild_computes_too(self, host: Device, in_fork: Callable[..., Any]) -> None:
        assert in_fork(lambda: in_fork(lambda: host.compute_async(double, 21).result())) == 42


def test_enumerating_opens_no_context() -> None:
    """What a probe in the parent would leave behind is in no library that it loaded."""
    code = (
        "import sys\n"
        "from devicecore.device_factory import default_registry\n"
        "default_registry().explain()\n"
        "print({'torch', 'onnxruntime', 'numpy', 'cv2'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
