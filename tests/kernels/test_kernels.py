"""Kernels: registered, found on first use, and chosen for a device and its arguments."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.errors import NoKernelError, RegistrationError
from devicecore.kernels import Kernel, KernelRegistry, default_kernels, get_kernel, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SOURCE = """
FIRST, SECOND, BROKEN = "kernels_first", "kernels_second", "kernels_broken"

def modules(prefix):
    return {"acme": [FIRST, BROKEN, SECOND], "none": []}.get(prefix, [])
"""
KERNEL_MODULE = """
from devicecore.kernels import Kernel
import kernel_source
kernel_source.registry.register(
    Kernel("acme.{name}", lambda device, x: (x, "{name}"), device_type="NPU")
)
"""


@pytest.fixture
def registry() -> KernelRegistry:
    return KernelRegistry()


@pytest.fixture
def npu(registry: KernelRegistry) -> Device:
    return Device("/device:NPU:0", registry=registry)


@pytest.fixture
def gpu(registry: KernelRegistry) -> Device:
    """Return a device that torch can use."""
    return Device("/device:CUDA:0", torch_device="cuda:0", registry=registry)


def identity(device: Any, x: Any) -> Any:
    return x


def put(registry: KernelRegistry, op: str = "acme.scale", **fields: Any) -> Kernel:
    made = Kernel(op, fields.pop("function", identity), **fields)
    registry.register(made)
    return made


class TestRegistering:
    def test_the_decorator_gives_a_kernel_that_is_still_a_function(self) -> None:
        @kernel("test_kernels.double", device_type="NPU", priority=3, pure=False)
        def double(device: Any, x: int) -> int:
            return 2 * x

        try:
            assert isinstance(double, Kernel)
            assert (double.op, double.device_type, double.priority) == (
                "test_kernels.double",
                "NPU",
                3,
            )
            assert not double.pure
            assert double(None, 21) == 42
            assert default_kernels().find("test_kernels.double") == (double,)
            assert "test_kernels.double" in default_kernels().operations()
        finally:
            default_kernels().unregister(double)
        assert default_kernels().find("test_kernels.double") == ()
        assert "test_kernels.double" not in default_kernels().operations()

    @pytest.mark.parametrize("fields", [{}, {"device_type": "NPU", "framework": "torch"}], ids=str)
    def test_a_kernel_is_for_a_type_or_for_a_framework(
        self, fields: dict[str, str], registry: KernelRegistry
    ) -> None:
        with pytest.raises(RegistrationError, match="device_type or for a framework"):
            put(registry, **fields)
        assert registry.operations() == ()

    def test_two_that_nothing_tells_apart_are_refused(self, registry: KernelRegistry) -> None:
        first = put(registry, device_type="NPU")
        with pytest.raises(RegistrationError, match="another priority or label"):
            put(registry, device_type="NPU")
        with pytest.raises(RegistrationError):
            registry.register(first)
        assert registry.find("acme.scale") == (first,)

    def test_whatever_tells_them_apart_is_enough(self, registry: KernelRegistry) -> None:
        put(registry, device_type="NPU")
        put(registry, device_type="CUDA")
        put(registry, framework="torch")
        put(registry, device_type="NPU", priority=1)
        put(registry, device_type="NPU", label="fast")
        put(registry, device_type="NPU", supports=lambda device, x: True)
        put(registry, "acme.other", device_type="NPU")
        assert len(registry.find("acme.scale")) == 6
        assert registry.operations() == ("acme.other", "acme.scale")

    def test_what_is_not_registered_cannot_be_unregistered(self, registry: KernelRegistry) -> None:
        mine = Kernel("acme.scale", identity, device_type="NPU")
        with pytest.raises(RegistrationError, match="not registered"):
            registry.unregister(mine)
        put(registry, device_type="NPU")
        with pytest.raises(RegistrationError):
            registry.unregister(mine)  # an equal one is not the same one

    def test_changes_are_told(self, registry: KernelRegistry) -> None:
        class Watcher:
            told = 0

            def kernels_changed(self) -> None:
                self.told += 1

        watcher = Watcher()
        registry.watch(watcher)
        before = registry.generation
        mine = put(registry, device_type="NPU")
        registry.unregister(mine)
        assert watcher.told == 2
        assert registry.generation == before + 2
        alive = weakref.ref(watcher)
        del watcher
        gc.collect()
        assert alive() is None


class TestChoosing:
    def test_a_type_goes_before_a_framework_whatever_the_priority(
        self, registry: KernelRegistry, gpu: Device
    ) -> None:
        put(registry, framework="torch", priority=100)
        mine = put(registry, device_type="CUDA", priority=-5)
        assert get_kernel("acme.scale", gpu) is mine

    def test_then_the_higher_priority_goes_first(
        self, registry: KernelRegistry, gpu: Device
    ) -> None:
        for priority in (5, 50, 20):
            put(registry, device_type="CUDA", priority=priority)
        assert get_kernel("acme.scale", gpu).priority == 50

    def test_a_framework_kernel_fits_every_device_of_torch(
        self, registry: KernelRegistry, gpu: Device, npu: Device
    ) -> None:
        mine = put(registry, framework="torch")
        assert get_kernel("acme.scale", gpu) is mine
        with pytest.raises(NoKernelError) as caught:
            get_kernel("acme.scale", npu)
        assert caught.value.refused == {
            "acme.scale for torch": "it is for devices that torch can use"
        }

    def test_a_devices_own_kernels_come_first(self, registry: KernelRegistry) -> None:
        own = Kernel("acme.scale", identity)
        device = Device("/device:NPU:0", registry=registry, kernels=[own])
        put(registry, device_type="NPU")
        assert get_kernel("acme.scale", device) is own
        put(registry, device_type="NPU", priority=1)
        assert get_kernel("acme.scale", device) is not own

    def test_a_label_is_taken_only_when_it_is_asked_for(
        self, registry: KernelRegistry, npu: Device
    ) -> None:
        fast = put(registry, device_type="NPU", priority=9, label="fast", exactness="close")
        plain = put(registry, device_type="NPU")
        assert get_kernel("acme.scale", npu) is plain
        assert get_kernel("acme.scale", npu, "fast") is fast
        with pytest.raises(NoKernelError, match="not labelled 'slow'"):
            get_kernel("acme.scale", npu, label="slow")

    @pytest.mark.parametrize("exactness", ["lsb1", "tolerance", "close"])
    def test_what_is_not_exact_is_not_taken_unasked(
        self, exactness: Any, registry: KernelRegistry, npu: Device
    ) -> None:
        put(registry, device_type="NPU", exactness=exactness)
        with pytest.raises(NoKernelError, match=f"only {exactness}"):
            get_kernel("acme.scale", npu)

    def test_every_refusal_is_told(self, registry: KernelRegistry, npu: Device) -> None:
        put(registry, device_type="CUDA")
        put(registry, framework="torch")
        put(registry, device_type="NPU", label="fast")
        put(registry, device_type="NPU", exactness="close")
        with pytest.raises(NoKernelError) as caught:
            get_kernel("acme.scale", npu)
        assert set(caught.value.refused) == {
            "acme.scale for CUDA",
            "acme.scale for torch",
            "acme.scale[fast] for NPU",
            "acme.scale for NPU",
        }
        for title, reason in caught.value.refused.items():
            assert f"{title}: {reason}" in str(caught.value)

    def test_nothing_registered_is_told_too(self, npu: Device) -> None:
        with pytest.raises(NoKernelError, match="nobody registered"):
            get_kernel("acme.scale", npu)

    def test_a_kernel_says_why_it_does_not_take_arguments(self, npu: Device) -> None:
        small = Kernel("op", identity, "NPU", supports=lambda device, x: x < 10)
        assert small.refusal(npu, (3,), {}) == ""
        assert "support" in small.refusal(npu, (30,), {})

        def promise(device: Any, x: int) -> Any:
            return "exact" if x < 10 else "lsb1"

        by_call = Kernel("op", identity, "NPU", exactness=promise)
        assert by_call.refusal(npu, (3,), {}) == ""
        assert "lsb1" in by_call.refusal(npu, (30,), {})
        labelled = Kernel("op", identity, "NPU", exactness=promise, label="fast")
        assert labelled.refusal(npu, (30,), {}) == ""


class TestFirstUse:
    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelRegistry]:
        """Return a registry that finds two good modules and a broken one."""
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "kernel_source.py").write_text(SOURCE)
        for name in ("first", "second"):
            (tmp_path / f"kernels_{name}.py").write_text(KERNEL_MODULE.format(name=name))
        (tmp_path / "kernels_broken.py").write_text("raise OSError('libacme.so.3 is missing')")
        registry = KernelRegistry("kernel_source:modules")
        import kernel_source  # type: ignore[import-not-found]  # it was just written

        kernel_source.registry = registry
        yield registry
        for name in ("kernel_source", "kernels_first", "kernels_second", "kernels_broken"):
            sys.modules.pop(name, None)

    def test_modules_are_imported_when_their_prefix_is_asked_for(
        self, source: KernelRegistry
    ) -> None:
        assert source.find("none.scale") == ()
        assert source.find("unknown") == ()
        assert "kernels_first" not in sys.modules
        assert len(source.find("acme.first")) == 1
        assert {"kernels_first", "kernels_second"} <= set(sys.modules)

    def test_a_broken_module_costs_only_itself_and_is_told(self, source: KernelRegistry) -> None:
        device = Device("/device:NPU:0", registry=source)
        assert device.compute("acme.second", 1) == (1, "second")
        with pytest.raises(
            NoKernelError, match=r"kernels_broken: OSError: libacme\.so\.3"
        ) as caught:
            device.compute("acme.third", 1)
        assert caught.value.refused == {"kernels_broken": "OSError: libacme.so.3 is missing"}

    def test_a_broken_module_is_told_at_the_first_question(self, source: KernelRegistry) -> None:
        device = Device("/device:NPU:0", registry=source)
        with pytest.raises(NoKernelError, match="libacme"):
            device.compute("acme.third", 1)

    def test_the_first_questions_at_once_find_the_same(self, source: KernelRegistry) -> None:
        start = threading.Barrier(8)

        def ask() -> tuple[Kernel, ...]:
            start.wait()
            return source.find("acme.second")

        with ThreadPoolExecutor(8) as threads:
            answers = {future.result() for future in [threads.submit(ask) for _ in range(8)]}
        assert len(answers) == 1
        assert len(answers.pop()) == 1


def test_a_forked_child_is_not_locked_out(
    registry: KernelRegistry, in_fork: Callable[..., Any]
) -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with registry._lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert in_fork(lambda: put(registry, device_type="NPU").op) == "acme.scale"
    finally:
        release.set()
        holder.join()
    assert registry.find("acme.scale") == ()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("test_near.rezise", "test_near.resize"),
        ("TEST_NEAR.Resize", "test_near.resize"),
        ("test_naer.resize", "test_near.resize"),
        ("test_near.resize ", "test_near.resize"),
        ("resize_of_test_near", "test_other.resize_of_test_near"),
        ("test_near.entirely_different", ""),
    ],
)
def test_a_misspelt_operation_says_what_is_near(written: str, meant: str) -> None:
    registry = KernelRegistry()
    for op in ("test_near.resize", "test_other.resize_of_test_near"):
        registry.register(Kernel(op, lambda device: device, device_type="CPU"))
    assert registry.fix(written) == (f"did you mean {meant!r}?" if meant else "")
    assert registry.fix("test_near.resize") == ""
    with pytest.raises(NoKernelError, match=meant or "register one with @kernel"):
        get_kernel(written, Device("/device:CPU:0", registry=registry))
