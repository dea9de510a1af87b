"""`TorchDevice`: queued work, late errors, memory and forks.

No GPU was there when these were written, so torch's module for GPUs is a stand-in with events
that a test completes. `tests/hardware/test_cuda.py` runs the same on a real GPU.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device_factory import DeviceOptions
from devicecore.errors import DeviceGoneError, NotLiveError, OutOfMemoryError
from devicecore.liveness import PhysicalDevice
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._torch_device import TorchDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

torch = pytest.importorskip("torch")

PATIENCE_S = 30.0
ILLEGAL = "CUDA error: an illegal memory access was encountered\nCompile with TORCH_USE_CUDA_DSA"


class Event:
    """An event that is over once the test says so."""

    def __init__(self, backend: Backend, *, blocking: bool) -> None:
        assert blocking  # a waiting thread must not burn a CPU
        self.backend = backend
        self.over = threading.Event()
        self.stream: object = None
        self.fault: Exception | None = None

    def record(self, stream: object) -> None:
        self.stream = stream
        self.backend.events.append(self)

    def synchronize(self) -> None:
        assert self.over.wait(PATIENCE_S)
        self.backend.waiters.add(threading.current_thread())
        if self.fault is not None:
            raise self.fault


class Backend:
    """Stands for ``torch.cuda`` on an opened GPU."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.waiters: set[threading.Thread] = set()
        self.stream = "the default stream"
        self.fault: Exception | None = None
        self.forked = False
        self.opened = True
        self.fraction: tuple[float, int] | None = None
        self.chosen: list[tuple[str, int]] = []
        self.Event: Callable[..., Event] = partial(Event, self)

    def current_stream(self, device: str) -> Any:
        assert device == "cuda:1"
        return SimpleNamespace(name=self.stream, query=self._answer)

    def synchronize(self, device: str) -> None:
        self._answer()

    def _answer(self) -> None:
        if self.fault is not None:
            raise self.fault

    def set_device(self, index: int) -> None:
        self.chosen.append((threading.current_thread().name, index))

    def set_per_process_memory_fraction(self, share: float, index: int) -> None:
        self.fraction = (share, index)

    def is_initialized(self) -> bool:
        return self.opened

    def mem_get_info(self, device: str) -> tuple[int, int]:
        return 3 << 30, 4 << 30

    def memory_allocated(self, device: str) -> int:
        return 1 << 20

    def memory_reserved(self, device: str) -> int:
        return 2 << 20

    def _is_in_bad_fork(self) -> bool:
        return self.forked


GPU = PhysicalDevice("CUDA", 1, "GPU-of-these-tests", "a stand-in", memory_bytes=4 << 30)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    """The stand-in, in place of torch's module."""
    stand_in = Backend()
    monkeypatch.setattr(TorchDevice, "_backend", stand_in)
    return stand_in


@pytest.fixture
def device(backend: Backend, request: pytest.FixtureRequest) -> Iterator[TorchDevice]:
    """A device on a GPU of its own, since a lost GPU stays lost in this process."""
    gpu = PhysicalDevice("CUDA", 1, f"GPU-{request.node.name}", "", memory_bytes=4 << 30)
    made = TorchDevice.on(gpu, "/device:CUDA:1", DeviceOptions(), "cuda:1")
    yield made
    for event in backend.events:
        event.over.set()
    made.close()


def error_of(future: Future[Any]) -> BaseException | None:
    return future.exception(timeout=PATIENCE_S)


def test_a_call_is_made_in_the_callers_thread_and_stream(
    device: TorchDevice, backend: Backend
) -> None:
    backend.stream = "the caller's"
    threads = []

    def kernel(_: object) -> int:
        threads.append(threading.current_thread())
        return 5

    future = device.compute_async(kernel)
    assert threads == [threading.current_thread()]
    (event,) = backend.events
    assert event.stream is not None
    assert getattr(event.stream, "name", "") == "the caller's"
    assert not future.done()
    assert not future.cancel()
    event.over.set()
    assert future.result(PATIENCE_S) == 5


def test_one_thread_waits_for_the_gpu_and_calls_back_once(
    device: TorchDevice, backend: Backend
) -> None:
    calls: list[Any] = []
    futures = [
        device.compute_async(lambda _, n=n: n, done=lambda f: calls.append(f.result()))
        for n in range(20)
    ]
    for event in backend.events:
        event.over.set()
    assert [future.result(PATIENCE_S) for future in futures] == list(range(20))
    device.close()
    assert calls == list(range(20))
    assert len(backend.waiters) == 1
    assert backend.chosen == [("CUDA:1", 1)]


def test_an_error_of_the_call_itself_arrives_at_once(device: TorchDevice, backend: Backend) -> None:
    def wrong(_: object) -> None:
        msg = "shapes do not match"
        raise ValueError(msg)

    future = device.compute_async(wrong)
    assert isinstance(error_of(future), ValueError)
    assert backend.events == []
    assert not device.gone


def test_a_late_error_takes_the_gpu_and_its_siblings(device: TorchDevice, backend: Backend) -> None:
    sibling = SessionDevice("/device:TENSORRT:1", physical_id=device.physical_id)
    first = device.compute_async(lambda _: 1)
    second = device.compute_async(lambda _: 2)
    for event in backend.events:
        event.fault = RuntimeError(ILLEGAL)
        event.over.set()
    for future in (first, second):
        error = error_of(future)
        assert isinstance(error, DeviceGoneError)
        assert error.reason == ILLEGAL.splitlines()[0]
    assert device.gone
    assert sibling.gone
    with pytest.raises(DeviceGoneError):
        device.compute(lambda _: 3)
    assert isinstance(error_of(device.compute_async(lambda _: 3)), DeviceGoneError)


def test_closing_waits_for_what_is_queued(device: TorchDevice, backend: Backend) -> None:
    future = device.compute_async(lambda _: "done")
    closer = threading.Thread(target=device.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    assert not future.done()
    backend.events[0].over.set()
    closer.join(PATIENCE_S)
    assert future.result(0) == "done"
    assert isinstance(error_of(device.compute_async(lambda _: 1)), DeviceGoneError)


def test_a_callback_may_queue_more_and_wait_for_it(device: TorchDevice, backend: Backend) -> None:
    results: list[Any] = []

    def again(_: Future[Any]) -> None:
        inner = device.compute_async(lambda _: "inner")
        results.append(inner.result(PATIENCE_S))

    original = backend.Event

    def open_event(*, blocking: bool = False) -> Event:
        event = original(blocking=blocking)
        event.over.set()
        return event

    outer = device.compute_async(lambda _: "outer", done=again)
    backend.Event = open_event
    backend.events[0].over.set()
    assert outer.result(PATIENCE_S) == "outer"
    device.close()
    assert results == ["inner"]


def test_a_callback_may_close_the_device(device: TorchDevice, backend: Backend) -> None:
    future = device.compute_async(lambda _: 1, done=lambda _: device.close())
    backend.events[0].over.set()
    assert future.result(PATIENCE_S) == 1
    deadline = time.monotonic() + PATIENCE_S
    while not device.gone and time.monotonic() < deadline:
        time.sleep(0.01)
    assert device.gone == "it was closed"


def test_a_kernel_without_torch_needs_no_gpu_to_wait_for(
    device: TorchDevice, backend: Backend
) -> None:
    backend.opened = False
    assert device.compute_async(lambda _: 7).result(0) == 7
    assert backend.events == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), OutOfMemoryError),
        (RuntimeError("CUDA error: out of memory"), OutOfMemoryError),
        (RuntimeError("MPS backend out of memory (MPS allocated: 5 GB)"), OutOfMemoryError),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), OutOfMemoryError),
        (OutOfMemoryError("CUDAExecutionProvider", "arena"), OutOfMemoryError),
        (RuntimeError("CUDA error: no kernel image is available for execution"), NotLiveError),
        (RuntimeError("Found no NVIDIA driver on your system."), NotLiveError),
        (RuntimeError("Cannot re-initialize CUDA in forked subprocess."), DeviceGoneError),
        (RuntimeError(ILLEGAL), DeviceGoneError),
        (RuntimeError("HIP error: unspecified launch failure"), DeviceGoneError),
        (NotLiveError("CUDAExecutionProvider", "broken", "CUDA failure 700"), DeviceGoneError),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_of_frameworks_become_ours(
    device: TorchDevice, error: Exception, kind: type[Exception]
) -> None:
    def fail(_: object) -> None:
        raise error

    with pytest.raises(kind) as caught:
        device.compute(fail)
    assert device.name in str(caught.value)
    assert caught.value.__cause__ is error
    assert bool(device.gone) == (kind is DeviceGoneError and "forked" not in str(error))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        RuntimeError("illegal instruction in the text to translate"),
        MemoryError("the host's"),
        NotLiveError("X", "broken", "its own reason"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_other_errors_stay_as_they_are(device: TorchDevice, error: Exception) -> None:
    def fail(_: object) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        device.compute(fail)
    assert caught.value is error
    assert not device.gone


def test_a_status_query_finds_a_lost_gpu(device: TorchDevice, backend: Backend) -> None:
    device.refresh_status()
    device.synchronize()
    backend.fault = RuntimeError("CUDA error: uncorrectable ECC error encountered")
    with pytest.raises(DeviceGoneError, match="ECC"):
        device.refresh_status()
    assert device.gone


def test_memory_is_told_only_of_an_open_gpu(device: TorchDevice, backend: Backend) -> None:
    backend.opened = False
    assert device.memory_stats() == {"limit": 4 << 30}
    backend.opened = True
    stats = device.memory_stats()
    assert (stats["free"], stats["total"], stats["allocated"]) == (3 << 30, 4 << 30, 1 << 20)


@pytest.mark.parametrize("use", ["compute", "allocate"])
def test_a_memory_limit_holds_from_the_first_use(backend: Backend, use: str) -> None:
    limited = DeviceOptions(memory_limit=1 << 30)
    device = TorchDevice.on(GPU, "/device:CUDA:1", limited, "cuda:1")
    assert device.attributes.memory_limit == 1 << 30
    assert backend.fraction is None
    if use == "compute":
        device.compute(lambda _: None)
    else:
        with suppress(AssertionError, RuntimeError):  # there may be no GPU to allocate on
            device.allocate((1,), "float32")
    assert backend.fraction == (0.25, 1)


def test_only_a_dtype_of_torch_can_be_allocated(device: TorchDevice) -> None:
    with pytest.raises(TypeError, match="no dtype 'vmap'"):
        device.allocate((1,), "vmap")


def test_a_fork_of_an_opened_gpu_retires_it(
    device: TorchDevice, backend: Backend, in_fork: Callable[[Callable[[], Any]], Any]
) -> None:
    backend.forked = True  # torch says so in the child only, after the parent opened the GPU

    def use() -> str:
        try:
            device.compute(lambda _: 1)
        except DeviceGoneError as error:
            return error.reason
        return "it ran"

    assert in_fork(use) == "it was opened before this process was forked"
    assert not device.gone


def test_a_fork_of_a_gpu_that_was_not_opened_can_use_it(
    device: TorchDevice, backend: Backend, in_fork: Callable[[Callable[[], Any]], Any]
) -> None:
    backend.opened = False
    assert in_fork(lambda: device.compute_async(lambda _: 41 + 1).result(PATIENCE_S)) == 42


def test_a_device_that_nobody_holds_lets_its_thread_end(backend: Backend) -> None:
    gpu = PhysicalDevice("CUDA", 1, None, memory_bytes=4 << 30)
    device = TorchDevice.on(gpu, "/device:CUDA:1", DeviceOptions(), "cuda:1")
    future = device.compute_async(lambda _: 1)
    backend.events[0].over.set()
    future.result(PATIENCE_S)
    (waiter,) = backend.waiters
    assert waiter.is_alive()
    del device
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive()
