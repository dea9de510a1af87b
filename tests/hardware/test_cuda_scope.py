"""Scopes on real GPUs: where tensors land, which GPU is current, and that all of it goes back."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, current_device, default_registry, device_scope
from devicecore.errors import UnknownDeviceError
from devicecore.runtime import host_cpu
from tests.scope.conftest import in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.hardware


@pytest.fixture
def torch() -> Iterator[Any]:
    """torch with a GPU; the first GPU is current before and after."""
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], "torch")
    if not found.is_live:
        pytest.skip(f"CUDA for torch is {found.state}: {found.reason}")
    import torch

    torch.cuda.set_device(0)
    yield torch
    assert torch.cuda.current_device() == 0
    assert torch.empty(1).device.type == "cpu"


@pytest.fixture
def two(torch: Any) -> Any:
    """torch with two GPUs."""
    if torch.cuda.device_count() < 2:
        pytest.skip("this machine has one GPU")
    return torch


def where(torch: Any) -> tuple[str, int]:
    return str(torch.empty(1).device), torch.cuda.current_device()


def test_the_first_gpu(torch: Any) -> None:
    with device_scope("cuda:0") as device:
        assert device is current_device()
        assert where(torch) == ("cuda:0", 0)
        with device_scope("cpu"):
            assert where(torch) == ("cpu", 0)
        assert where(torch) == ("cuda:0", 0)


def test_the_second_gpu(two: Any) -> None:
    with device_scope("cuda:1"):
        assert where(two) == ("cuda:1", 1)
        assert two.ones(2).cuda().device.index == 1
        with pytest.raises(ZeroDivisionError), device_scope("cuda:0"):
            _ = 1 // (where(two) != ("cuda:0", 0))
        assert where(two) == ("cuda:1", 1)
        with device_scope("cpu"):
            assert where(two) == ("cpu", 1)


def test_an_index_and_a_class_mean_a_gpu(two: Any) -> None:
    for scope in (device_scope(1), device_scope("gpu:1"), device_scope(two.device("cuda:1"))):
        with scope as device:
            assert device.parsed_name.index == 1
            assert where(two) == ("cuda:1", 1)


def test_without_an_index_it_is_the_current_gpu(two: Any) -> None:
    scope, of_class = device_scope("cuda"), device_scope("gpu")
    with scope, of_class:
        assert where(two) == ("cuda:0", 0)
    two.cuda.set_device(1)
    try:
        for each in (scope, of_class, scope, of_class):
            with each:
                assert where(two) == ("cuda:1", 1)
        with device_scope("cuda:0"), scope, of_class:
            assert where(two) == ("cuda:0", 0)
    finally:
        two.cuda.set_device(0)
    with scope, of_class:
        assert where(two) == ("cuda:0", 0)


def test_a_gpu_made_current_inside_is_undone_and_survives_another_scope(two: Any) -> None:
    with device_scope("cuda:0"):
        two.cuda.set_device(1)
        with device_scope("cuda:0"):
            assert where(two) == ("cuda:0", 0)
        assert two.cuda.current_device() == 1


def test_each_thread_has_its_own(two: Any) -> None:
    meet = threading.Barrier(2, timeout=60)

    def work(index: int) -> tuple[tuple[str, int], tuple[str, int]]:
        with device_scope(f"cuda:{index}"):
            meet.wait()
            inside = where(two)
            meet.wait()
        return inside, where(two)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(work, (0, 1))
    assert first == (("cuda:0", 0), ("cpu", 0))
    assert second == (("cuda:1", 1), ("cpu", 0))
    with device_scope("cuda:1"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(where, two).result(60) == ("cpu", 0)


def test_tasks_that_interleave(two: Any) -> None:
    async def main() -> tuple[tuple[str, int], tuple[str, int]]:
        meet = asyncio.Event()

        @device_scope("cuda:1")
        async def one() -> tuple[str, int]:
            await meet.wait()
            return where(two)

        @device_scope("cuda:0")
        async def other() -> tuple[str, int]:
            meet.set()
            await asyncio.sleep(0)
            return where(two)

        first, second = await asyncio.gather(one(), other())
        return first, second

    assert asyncio.run(main()) == (("cuda:1", 1), ("cuda:0", 0))


def test_streams_are_left_alone(two: Any) -> None:
    own = two.cuda.Stream(0)
    with two.cuda.stream(own):
        with device_scope("cuda:1"):
            assert two.cuda.current_stream(0) == own
            assert two.cuda.current_stream() == two.cuda.default_stream(1)
        assert two.cuda.current_stream() == own


def test_a_scope_of_another_framework_leaves_the_gpu_alone(two: Any) -> None:
    with device_scope("cuda:1", frameworks="jax") as device:
        assert current_device() is device
        assert where(two) == ("cpu", 0)


def test_a_gpu_that_is_not_there(torch: Any) -> None:
    for index in (torch.cuda.device_count(), 99, 256):
        with pytest.raises(UnknownDeviceError), device_scope(f"cuda:{index}"):
            pytest.fail("entered")
    with device_scope("cuda:256", fallback="cpu") as device:
        assert device is host_cpu()


def test_what_a_gpu_computes_inside(torch: Any) -> None:
    with device_scope("cuda:0"):
        assert (torch.arange(6.0) @ torch.ones(6)).item() == 15
        assert torch.nn.Linear(2, 2).weight.is_cuda


def test_a_session_device_places_torch_on_its_gpu(torch: Any) -> None:
    session = Device("/device:TENSORRT:0", device_class="GPU")
    with device_scope("cuda:0") as gpu:
        session.link_memory(gpu)
    with device_scope(session):
        assert where(torch) == ("cuda:0", 0)


def test_the_first_gpu_is_not_opened_before_something_is_on_it(torch: Any) -> None:
    code = """
from devicecore import device_scope
import torch
with device_scope("cuda:0"):
    opened = torch.cuda.is_initialized()
    where = str(torch.empty(1).device)
print(json.dumps([opened, where, torch.cuda.is_initialized()]))
"""
    assert in_child(code) == [False, "cuda:0", True]


def test_a_forked_child_starts_outside_and_leaves_the_gpu_alone(
    torch: Any, in_fork: Callable[..., Any]
) -> None:
    with device_scope("cuda:0"):
        torch.empty(1)
        assert in_fork(lambda: (str(torch.empty(1).device), current_device() is host_cpu())) == (
            "cpu",
            True,
        )
