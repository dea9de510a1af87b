"""What a loader keeps of arrays: shared memory of its workers, and what datasets keep."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import DeviceLoader  # noqa: E402
from devicecore.migrate.loader import sample_recorder  # noqa: E402
from devicecore.migrate.loader.arena import Arena  # noqa: E402
from devicecore.migrate.loader.shm_blocks import SHM_BLOCKS, Loan, ShmBlock  # noqa: E402
from devicecore.migrate.recording.current import OPEN  # noqa: E402
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.loader import pictures  # noqa: E402
from tests.migrate.loader.batches import STARTS, TORCH, both, same  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("no_trace"),
    pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels"),
]


def test_memory_of_workers_is_used_again_only_when_it_was_read() -> None:
    plan = {"tests.migrate.loader.pictures:planes": TORCH}
    dataset = pictures.Plane(12)
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=1))
    loader = DeviceLoader(dataset, plan, batch_size=1, num_workers=1, strict=True)
    same(list(loader), expected)


def test_arrays_that_a_dataset_keeps() -> None:
    dataset = pictures.Cached()
    loader, expected = both(dataset)
    dataset.kept.clear()
    same(list(loader), expected)
    assert {type(each) for each in dataset.kept.values()} == {np.ndarray}
    same(list(loader), expected)
    cv2.flip(dataset.kept[0], 1)


def test_memory_of_which_nothing_is_sent() -> None:
    arena = Arena("somebody")
    image = np.zeros((9, 9), np.uint8)
    wasted = arena.keep(image).block
    arena.close()
    assert wasted.is_free
    sent = arena.keep(image)
    assert sent.block is wasted
    arena.send([sent])
    arena.close()
    assert not sent.block.is_free  # until the other process has read it
    assert arena.keep(image).block is not wasted


def test_arrays_that_a_generator_keeps() -> None:
    loader, expected = both(pictures.Changes(), num_workers=1)
    same(list(loader), expected)  # whose memory was used again since


def test_several_epochs_with_the_same_workers() -> None:
    loader, expected = both(pictures.Pictures(), num_workers=2, persistent_workers=True)
    for _ in range(3):
        same(list(loader), expected)
    names = SHM_BLOCKS.names()
    same(list(loader), expected)
    assert SHM_BLOCKS.names() == names  # filled anew, and no more of them
    del loader
    gc.collect()
    assert not SHM_BLOCKS.names()


def test_memory_that_is_read_late(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late:
        def query(self) -> bool:
            return False

        def synchronize(self) -> None:
            pass

    loader, expected = both(pictures.Pictures(), num_workers=1, persistent_workers=True)
    monkeypatch.setattr(loader, "_event", Late)
    same(list(loader), expected)
    names = SHM_BLOCKS.names()
    same(list(loader), expected)
    assert SHM_BLOCKS.names() == names


def test_batches_that_nobody_wants_are_memory_that_is_free() -> None:
    options = {"num_workers": 1, "persistent_workers": True, "prefetch_factor": 3}
    loader, expected = both(pictures.Pictures(), **options)
    for _ in range(3):
        same([next(iter(loader))], expected[:1])
    names = SHM_BLOCKS.names()
    for _ in range(6):
        same([next(iter(loader))], expected[:1])
    assert SHM_BLOCKS.names() == names
    same(list(loader), expected)


def test_a_loan_ends_once() -> None:
    block = ShmBlock("somebody", "a piece", torch.zeros(512, dtype=torch.uint8))
    states = []
    for ends in (True, False):
        block.take()
        loan = Loan(block)
        if ends:
            loan.end()
            states.append(block.is_free)
            block.take()  # as a worker does that fills it anew
        del loan
        states.append(block.is_free)
    assert states == [True, False, True]


@pytest.mark.skipif("fork" not in STARTS, reason="this system does not fork")
@pytest.mark.parametrize("immutable", [False, True])
def test_arrays_of_the_dataset(immutable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = pictures.Held()
    loader, expected = both(
        dataset, num_workers=2, multiprocessing_context="fork", immutable=immutable
    )
    same(list(loader), expected)
    assert not SHM_BLOCKS.names()  # forgotten once the workers have ended
    for image in dataset.images:
        image.flags.writeable = False
    loader, expected = both(dataset, num_workers=2, multiprocessing_context="fork")
    monkeypatch.setattr(Arena, "keep", None)  # nothing has to be sent
    same(list(loader), expected)


def test_tensors_that_a_dataset_keeps() -> None:
    class Kept(pictures.Tensors):
        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[int, Any] = {}

        def __getitem__(self, index: int) -> Any:
            if index not in self.kept:
                self.kept[index] = super().__getitem__(index)
            return self.kept[index]

    dataset = Kept()
    loader, expected = both(dataset, {"cv2.resize": TORCH, "cv2.cvtColor": TORCH})
    dataset.kept.clear()
    for _ in range(2):
        same(list(loader), expected)
    assert type(dataset.kept[0]["input"]) is torch.Tensor
    torch.testing.assert_close(dataset.kept[0]["input"], expected[0]["input"][0])


class Local(torch.utils.data.IterableDataset):  # type: ignore[name-defined,misc] # it has no types
    """A stream whose generator has the last image in a name of its own."""

    def __iter__(self) -> Any:
        for index in range(9):
            image = pictures.prepared(np.full((40, 30, 3), index, np.uint8))
            yield image, index


@pytest.mark.parametrize("workers", [0, 1])
def test_names_of_a_generator(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[Any] = []
    put = sample_recorder._put_on_host

    def counted(kept: Any) -> None:
        found = list(kept)
        counts.extend(found)
        put(found)

    monkeypatch.setattr(sample_recorder, "_put_on_host", counted)
    loader, expected = both(Local(), num_workers=workers)
    same(list(loader), expected)
    assert [row.migrated for row in loader.report().rows[:2]] == [3, 9]
    assert len(counts) == (0 if workers else 3)  # the last of each batch


class Mean(torch.utils.data.IterableDataset):  # type: ignore[name-defined,misc] # it has no types
    """A stream whose samples are computed from those before, and from a buffer."""

    def __iter__(self) -> Any:
        buffer = np.zeros((40, 50, 3), np.uint8)
        mean: Any = None
        for index in range(12):
            buffer[...] = np.random.default_rng(index).integers(0, 256, buffer.shape, np.uint8)
            small = cv2.resize(buffer, (16, 12))
            mean = small.astype(np.float32) if mean is None else mean * np.float32(0.9) + small
            buffer[...] = 0
            yield mean, index


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_samples_that_are_computed_from_those_before(workers: int) -> None:
    loader, expected = both(Mean(), {"cv2.resize": TORCH}, num_workers=workers)
    same(list(loader), expected)
    assert loader.report().rows[0].migrated == len(expected)


def test_threads_that_outlive_a_sample() -> None:
    results: dict[int, Any] = {}

    class Late(pictures.Pictures):
        def __getitem__(self, index: int) -> Any:
            small = cv2.resize(self.image(index), (16, 12))

            def later(number: int = index) -> None:
                done.wait()
                results[number] = np.asarray(small.astype(np.float32) * 2)

            threads.append(threading.Thread(target=later))
            threads[-1].start()
            return small, index

    threads: list[threading.Thread] = []
    done = threading.Event()
    dataset = Late()
    loader = DeviceLoader(dataset, {"cv2.resize": TORCH}, batch_size=3)
    images = torch.cat([batch[0] for batch in loader])
    done.set()
    for thread in threads:
        thread.join()
    for index, image in enumerate(images):
        np.testing.assert_array_equal(results[index], image.numpy() * np.float32(2))
    OPEN.clear()


KEPT: list[Any] = []


def test_arrays_that_are_kept_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    class Elsewhere(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            found = super().prepare(image)
            KEPT.append(found)
            return found

    plan = {f"{pictures.__name__}:prepared": TORCH}
    dataset = Elsewhere()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    KEPT.clear()
    try:
        same(list(DeviceLoader(dataset, plan, batch_size=3)), expected)
        for own, wanted in zip(KEPT, torch.cat([images for images, _ in expected]), strict=True):
            np.testing.assert_array_equal(np.asarray(own), wanted.numpy())
    finally:
        KEPT.clear()
        OPEN.clear()
    assert caplog.text.count("kept where they are not found") == 1


@pytest.mark.parametrize("place", ["sample", "collation"])
def test_memory_of_batches_that_fail(place: str) -> None:
    """It is free again, so that workers which stay need no more of it."""
    dataset = pictures.Failing(place)
    loader = DeviceLoader(
        dataset,
        {f"{pictures.__name__}:prepared": TORCH},
        batch_size=3,
        num_workers=1,
        persistent_workers=True,
    )
    others = set(multiprocessing.active_children())
    sizes = []
    for _ in range(8):
        with pytest.raises((KeyError, RuntimeError)):
            list(loader)
        (worker,) = set(multiprocessing.active_children()) - others
        sizes.append(shared(worker.pid))
    # A busy machine frees one piece late; a leak would be one each time.
    assert sizes[-1] < sizes[2] + 3 * LEAST


# A block of shared memory has as many bytes at least.
LEAST = 1 << 20


class Backwards(torch.utils.data.Sampler):  # type: ignore[name-defined,misc] # it has no types
    """The first pictures, and the last ones afterwards."""

    def __init__(self) -> None:
        self.orders = iter([[0, 1], [6, 5, 4, 3]])

    def __iter__(self) -> Any:
        return iter(next(self.orders))


def test_arrays_that_are_kept_of_a_batch_that_fails() -> None:
    dataset = pictures.Remembers()
    plan = {"cv2.resize": TORCH, "cv2.flip": TORCH}
    options: Any = {"num_workers": 1, "persistent_workers": True, "sampler": Backwards()}
    loader = DeviceLoader(dataset, plan, batch_size=2, **options)
    with pytest.raises(KeyError):
        list(loader)
    first = torch.from_numpy(cv2.resize(dataset.image(0), (16, 12)))
    for remembered, turned, indices in loader:
        for index, one, other in zip(indices, remembered, turned, strict=True):
            assert torch.equal(one, first)
            small = cv2.resize(dataset.image(int(index)), (16, 12))
            assert torch.equal(other, torch.from_numpy(cv2.flip(small, 1)))


def shared(pid: int | None) -> int:
    """Return how many bytes a process has of torch's shared memory."""
    lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    ends = [line.split()[0].split("-") for line in lines if "torch_" in line]
    return sum(int(end, 16) - int(start, 16) for start, end in ends)
