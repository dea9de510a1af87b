"""Forked children and workers of loaders: what runs where, and who says so."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.ledger import default_ledger  # noqa: E402 - after cv2
from devicecore.migrate import KeepOnDevice, MigrationStrategy, PassThrough  # noqa: E402
from devicecore.migrate.calls.guard import Guard  # noqa: E402
from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402
from tests.migrate.sites import FakeGpu, site  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable


OPTIONS = Options()


class FakeCuda(FakeGpu):
    """A fake of a CUDA GPU, which no driver is opened for."""

    def __init__(self) -> None:
        super().__init__()
        self.device_type = "CUDA"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torch say, as a fake, that CUDA had started in the parent."""
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)


class Messages(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.mark.usefixtures("started")
def test_a_forked_child_runs_the_originals_and_says_so_once(
    in_fork: Callable[[Callable[[], Any]], Any],
) -> None:
    one = site(lambda: "the GPU's", device=FakeCuda())
    assert one.call(lambda: "the original's", (), {}) == "the GPU's"  # in the parent

    def child() -> tuple[list[Any], list[str], dict[str, int]]:
        default_ledger().clear()
        messages = Messages()
        logging.getLogger("devicecore").addHandler(messages)
        answers = [one.call(lambda: "the original's", (), {}) for _ in range(3)]
        return answers, messages.texts, dict(one.tally.row().reasons)

    answers, texts, reasons = in_fork(child)
    assert answers == ["the original's"] * 3
    (text,) = texts
    assert "was forked after CUDA had started in its parent" in text
    assert "spawn" in text
    assert list(reasons.values()) == [3]
    assert one.call(lambda: "the original's", (), {}) == "the GPU's"


def test_a_child_of_a_parent_without_cuda_may_use_it(
    in_fork: Callable[[Callable[[], Any]], Any],
) -> None:
    one = site(lambda: "the GPU's", device=FakeCuda())
    assert in_fork(lambda: one.call(lambda: "the original's", (), {})) == "the GPU's"


def test_a_device_that_is_gone_says_why() -> None:
    device = FakeGpu()
    assert Guard().reason(device) == ""
    device.retire("it was closed")
    assert Guard().reason(device) == "it was closed"


@pytest.fixture
def _threads() -> Any:
    before = cv2.getNumThreads()
    yield
    cv2.setNumThreads(before)


@pytest.mark.usefixtures("_threads")
def test_opencv_has_one_thread_in_a_worker_and_all_of_them_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch.utils.data as loaders

    cv2.setNumThreads(2)
    Guard().reason(FakeGpu())
    assert cv2.getNumThreads() == 2
    monkeypatch.setattr(loaders, "get_worker_info", lambda: "a worker")
    guard = Guard()
    guard.reason(FakeGpu())
    assert cv2.getNumThreads() == 1
    cv2.setNumThreads(2)  # the program's own wish comes later
    guard.reason(FakeGpu())
    assert cv2.getNumThreads() == 2


def test_a_real_worker_computes_with_one_thread_and_ordinary_arrays(
    in_fork: Callable[[Callable[[], Any]], Any],
) -> None:
    del in_fork  # it skips where nothing forks
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset[Any]):
        def __init__(self) -> None:
            self.site = site(lambda x: x + 1)

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            found = self.site.call(lambda x: x, (np.full(2, index),), {})
            return cv2.getNumThreads(), type(found) is np.ndarray, found

    threads, is_plain, found = next(
        iter(DataLoader(Images(), batch_size=2, num_workers=1, multiprocessing_context="fork"))
    )
    assert threads.tolist() == [1, 1]
    assert is_plain.all()
    assert found.tolist() == [[1, 1], [2, 2]]


class Away(torch.Tensor):  # type: ignore[name-defined,misc] # it has no types
    """A fake: a tensor that says it is on another device, and can only be moved to the host."""

    values: Any

    @staticmethod
    def of(values: Any) -> Any:
        found = torch.Tensor._make_wrapper_subclass(Away, values.shape, device="xpu:0")
        found.values = values
        return found

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._to_copy.default and kwargs["device"].type == "cpu":
            return args[0].values
        return cls.of(args[0].values) if func is torch.ops.aten.detach.default else NotImplemented


def away(values: Any) -> Any:
    return {"tensors": [Away.of(values)], "number": 3}


class Kept(torch.utils.data.Dataset):  # type: ignore[name-defined,misc] # as above
    """With samples that a strategy leaves on a device."""

    def __init__(self, *, keeps: bool) -> None:
        self.strategy = MigrationStrategy(
            away, output_processor=KeepOnDevice() if keeps else PassThrough()
        )

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        one = site(lambda x: self.strategy.compute(host_cpu(), OPTIONS, len, (x,), {}))
        found = one.call(len, (torch.full((2,), float(index)),), {})
        return type(found["tensors"][0]) is torch.Tensor, found


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_results_that_stay_on_a_device_leave_no_worker(how: str, keeps: bool) -> None:
    if how not in torch.multiprocessing.get_all_start_methods():
        pytest.skip("nothing forks here")
    dataset = Kept(keeps=keeps)
    assert dataset[1][1]["tensors"][0].device.type == "xpu"  # in the process itself
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=2, num_workers=1, multiprocessing_context=how
    )
    [(is_plain, found)] = loader
    assert is_plain.all()
    assert found["tensors"][0].tolist() == [[0, 0], [1, 1]]


FORKS = """
import os, sys, time
import cv2, numpy as np
import torch.utils.data
from devicecore.migrate.calls.guard import Guard
from tests.migrate.sites import FakeGpu

cv2.setNumThreads(4)
picture = np.zeros((1080, 1920, 3), np.uint8)
gpu = FakeGpu()
for _ in range(40):
    cv2.GaussianBlur(picture, (11, 11), 2.5)
    child = os.fork()  # its threads still look for more to do
    if not child:
        torch.utils.data.get_worker_info = lambda: "a worker"
        Guard().reason(gpu)
        os._exit(0)
    end = time.monotonic() + 20
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, 9)
            sys.exit("a forked child waits for threads that it does not have")
        time.sleep(0.001)
"""


def test_a_forked_worker_does_not_wait_for_threads_of_its_parent(
    in_fork: Callable[[Callable[[], Any]], Any],
) -> None:
    del in_fork  # it skips where nothing forks
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.run(
        [sys.executable, "-c", FORKS], env=environment, capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
