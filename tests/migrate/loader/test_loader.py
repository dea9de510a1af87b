"""`DeviceLoader`: batches are those of torch's loader, with tensors that a device has computed."""

from __future__ import annotations

import gc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import PlanError, RefusedCallError  # noqa: E402 - after torch
from devicecore.migrate import DeviceLoader, PipelineMigrator  # noqa: E402
from devicecore.migrate.recording import execution  # noqa: E402
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.loader import pictures  # noqa: E402
from tests.migrate.loader.batches import PLAN, STARTS, TORCH, both, same  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("no_trace"),
    pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels"),
]


@pytest.mark.parametrize(
    "kind", ["Pictures", "Jittered", "Named", "Ordered", "Looked", "Held", "Reused"]
)
def test_batches_are_those_of_torchs_loader(kind: str) -> None:
    loader, expected = both(getattr(pictures, kind)(), verify=1)
    same(list(loader), expected)
    batches, samples, *calls = loader.report().rows
    assert (batches.calls, batches.migrated) == (3, 3)
    assert (samples.calls, samples.migrated) == (7, 7)
    assert calls
    assert all(row.calls >= row.migrated > 0 for row in calls)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", ["Jittered", "Named", "Reused"])
def test_workers(kind: str, start: str) -> None:
    dataset = getattr(pictures, kind)()
    options = {"num_workers": 2, "multiprocessing_context": start}
    # What workers draw depends on the seed that torch gives them.
    loader, expected = both(dataset, **options)
    if kind != "Jittered":
        same(list(loader), expected)
        return
    assert [images.shape for images, _ in loader] == [images.shape for images, _ in expected]
    assert loader.report().rows[0].migrated == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_of_the_program(workers: int) -> None:
    plan = {f"{pictures.__name__}:Tensors/__getitem__": TORCH}
    loader, expected = both(pictures.Tensors(), plan, num_workers=workers)
    same(list(loader), expected)
    assert [row.migrated for row in loader.report().rows] == [len(expected), 7, 7, 7]


def test_samples_of_which_some_have_been_looked_at() -> None:
    class Some(pictures.Tensors):
        def __getitem__(self, index: int) -> Any:
            found = super().__getitem__(index)
            if index % 2 == 0:
                found["input"] = found["input"].exp()
                found["image"] = found["copy"].numpy() + np.random.rand()  # noqa: NPY002
            else:
                found["image"] = found["copy"].numpy()
            return found

    loader, expected = both(Some(), {f"{pictures.__name__}:Tensors/__getitem__": TORCH})
    same(list(loader), expected)


def test_tensors_that_change() -> None:
    class Flipped(pictures.Tensors):
        def __getitem__(self, index: int) -> Any:
            found = super().__getitem__(index)
            found["input"] = torch.flip(found["input"], [-1])
            found["bytes"][0] = index  # in the memory of an array
            return found

    loader, expected = both(Flipped(), {"cv2.resize": TORCH, "cv2.cvtColor": TORCH})
    same(list(loader), expected)
    assert loader.report().rows[0].migrated == len(expected)  # of the copy


def test_collation_of_the_program() -> None:
    loader, expected = both(pictures.Pictures(), collate_fn=pictures.collated)
    same(list(loader), expected)


class Sample:
    """As programs have them, with a collation of their own."""

    def __init__(self, image: Any, label: int) -> None:
        self.image = image
        self.label = label
        self.parts = deque([image[:2], {"last": image[-1:]}])


@pytest.mark.parametrize("workers", [0, 1])
def test_samples_that_are_objects(workers: int) -> None:
    dataset = Objects()
    loader = DeviceLoader(dataset, PLAN, batch_size=3, collate_fn=of_objects, num_workers=workers)
    expected = torch.utils.data.DataLoader(dataset, batch_size=3, collate_fn=of_objects)
    same(list(loader), list(expected))


class Objects(pictures.Pictures):
    def __getitem__(self, index: int) -> Any:
        return Sample(*super().__getitem__(index))


def of_objects(samples: list[Any]) -> Any:
    images = torch.stack([torch.from_numpy(cv2.flip(each.image, 1)) for each in samples])
    parts = [torch.from_numpy(part) for each in samples for part in (each.parts[0],)]
    return images, parts, [each.label for each in samples]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_that_loads_the_samples_of_a_batch(workers: int) -> None:
    loader, expected = both(pictures.Batches(), num_workers=workers)
    same(list(loader), expected)
    assert [row.migrated for row in loader.report().rows[:2]] == [len(expected)] * 2


def test_a_long_batch() -> None:
    dataset = pictures.Batches(300)
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=300))
    loader = DeviceLoader(dataset, PLAN, batch_size=300, strict=True)
    same(list(loader), expected)
    assert all(row.fell_back == 0 for row in loader.report().rows)


def test_a_pipe_of_torch_is_refused() -> None:
    pipe = pytest.importorskip("torch.utils.data.datapipes.iter").IterableWrapper([1, 2])
    with pytest.raises(TypeError, match="DataPipe"):
        DeviceLoader(pipe, PLAN)


def test_threads_of_a_sample(caplog: pytest.LogCaptureFixture) -> None:
    class Threads(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            small = cv2.resize(image, (32, 32))
            with ThreadPoolExecutor(2) as pool:
                turned = list(pool.map(partial(cv2.flip, small), (0, 1)))
                edges = list(pool.map(lambda each: cv2.Canny(each, 9, 9), turned))
            return (cv2.flip(small, 1), *turned, *edges)

    plan = {"cv2.resize": TORCH, "cv2.flip": TORCH}
    dataset = Threads()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    same(list(DeviceLoader(dataset, plan, batch_size=3)), expected)
    assert "could not be recorded" not in caplog.text


def test_a_stream() -> None:
    loader, expected = both(pictures.Stream())
    same(list(loader), expected)


def test_a_plan_of_one_function(caplog: pytest.LogCaptureFixture) -> None:
    class Last(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            return cv2.resize(cv2.flip(image, 1), (16, 16))

    plan = {"cv2.resize": TORCH}
    loader, expected = both(Last(), plan)
    same(list(loader), expected)
    assert loader.report().rows[0].migrated == 3
    assert not caplog.text
    # What others go on with has to be on the host.
    dataset = pictures.Pictures()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    same(list(DeviceLoader(dataset, plan, batch_size=3)), expected)
    assert "nothing to do" in caplog.text
    assert "could not be recorded" not in caplog.text


def test_it_has_what_torchs_loader_has() -> None:
    loader = DeviceLoader(pictures.Pictures(), PLAN, batch_size=3, drop_last=True)
    assert (loader.batch_size, loader.num_workers, loader.drop_last) == (3, 0, True)
    assert len(loader) == 2
    with pytest.raises(AttributeError):
        _ = loader.nonsense


def test_a_plan_without_anything_to_record(caplog: pytest.LogCaptureFixture) -> None:
    plan = {"tests.migrate.loader.pictures:jittered": TORCH}
    dataset = pictures.Pictures()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    same(list(DeviceLoader(dataset, plan, batch_size=3)), expected)
    assert "nothing to do" in caplog.text
    assert "nothing of tests.migrate.loader.pictures:jittered was called" in caplog.text
    with pytest.raises(RefusedCallError, match="plan names"):
        list(DeviceLoader(dataset, plan, batch_size=3, strict=True))


def test_calls_without_a_kernel() -> None:
    class Cubic(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            return cubic(image)

    plan = {f"{__name__}:cubic": TORCH}
    dataset = Cubic()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    loader = DeviceLoader(dataset, plan, batch_size=3)
    same(list(loader), expected)
    rows = {row.path: row for row in loader.report().rows}
    assert "no kernel" in next(iter(rows[f"{__name__}:cubic/cv2:resize"].reasons))
    with pytest.raises(RefusedCallError, match="no kernel"):
        list(DeviceLoader(dataset, plan, batch_size=3, strict=True))


def cubic(image: Any) -> Any:
    return cv2.flip(cv2.resize(image, (16, 16), interpolation=cv2.INTER_CUBIC), 1)


def test_two_at_once() -> None:
    loader, expected = both(pictures.Named(), num_workers=1)
    pairs = list(zip(loader, loader, strict=True))
    for one, wanted in zip(zip(*pairs, strict=True), [expected, expected], strict=True):
        same(list(one), wanted)


def test_two_loaders_at_once_record_their_own_samples() -> None:
    """Both replace the same functions of OpenCV."""
    plan = {"cv2.cvtColor": TORCH}
    wanted = {f"{pictures.__name__}:prepared": TORCH}
    one, expected = both(pictures.Pictures(), wanted)
    other = DeviceLoader(pictures.Jittered(), plan, batch_size=3)
    same([first for first, _ in zip(one, other, strict=True)], expected)
    (path,) = {row.path for row in one.report().rows if row.path.endswith("cv2:cvtColor")}
    assert path.startswith(pictures.__name__)
    counts = {row.path: row.calls for row in other.report().rows}
    assert counts["cv2:cvtColor"] == 7 * 2  # and not those of the other one


def test_what_cannot_be_recorded_is_loaded_anew(caplog: pytest.LogCaptureFixture) -> None:
    loader, expected = both(pictures.Refused())
    same(list(loader), expected)
    assert caplog.text.count("loaded anew") == 3
    assert loader.report().rows[0].migrated == 3  # of batches that have others, too


def test_errors_of_the_program_are_its_own() -> None:
    loader = DeviceLoader(pictures.Wrong(), PLAN, batch_size=3)
    with pytest.raises(KeyError, match="the program's own"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_before_an_error_are_not_lost(workers: int) -> None:
    dataset = pictures.Wrong()
    dataset.files[1] = dataset.files[0]  # so that the fourth one is the first that is wrong
    batches = iter(DeviceLoader(dataset, PLAN, batch_size=1, num_workers=workers))
    assert [next(batches)[1].item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="the program's own"):
        next(batches)


def test_workers_find_the_programs_own_dataset() -> None:
    options = {"num_workers": 2, "worker_init_fn": pictures.share}
    loader, expected = both(pictures.Shards(), **options)
    same(list(loader), expected)
    indices = [index for _, several in expected for index in several.tolist()]
    assert sorted(indices) == list(range(6))


def test_an_empty_dataset() -> None:
    assert not list(DeviceLoader(pictures.Pictures(0), PLAN, strict=True))


def test_nothing_stays_patched_after_a_break() -> None:
    before = dict(vars(cv2))
    for _ in DeviceLoader(pictures.Pictures(), PLAN, batch_size=2):
        break
    gc.collect()
    assert dict(vars(cv2)) == before


def test_a_device_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        msg = "the GPU is gone"
        raise RuntimeError(msg)

    dataset = pictures.Pictures()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    monkeypatch.setattr(execution, "compute_frames", fail)
    loader = DeviceLoader(dataset, PLAN, batch_size=3)
    same(list(loader), expected)
    batches = loader.report().rows[0]
    assert batches.fell_back == 3
    assert "the GPU is gone" in next(iter(batches.reasons))
    with pytest.raises(RuntimeError, match="the GPU is gone"):
        list(DeviceLoader(dataset, PLAN, batch_size=3, strict=True))


def test_a_device_that_fails_each_time_is_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def fail(*_: Any, **__: Any) -> Any:
        tried.append(1)
        raise RuntimeError

    dataset = pictures.Pictures()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=1))
    monkeypatch.setattr(execution, "compute_frames", fail)
    loader = DeviceLoader(dataset, PLAN, batch_size=1)
    same(list(loader), expected)
    same(list(loader), expected)
    assert len(tried) == 3
    assert any("switched off after 3 faults" in each for each in loader.report().rows[0].reasons)


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = execution.compute_frames

    def wrong(*args: Any, **how: Any) -> Any:
        found = right(*args, **how)
        return [(members, [each + 1 for each in columns]) for members, columns in found]

    dataset = pictures.Pictures()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=2))
    monkeypatch.setattr(execution, "compute_frames", wrong)
    loader = DeviceLoader(dataset, PLAN, batch_size=2, verify=1)
    same(list(loader), expected)
    assert loader.report().rows[0].fell_back == 4
    with pytest.raises(RefusedCallError, match="exact"):
        list(DeviceLoader(dataset, PLAN, batch_size=2, verify=1, strict=True))


def test_images_of_several_sizes_cannot_be_one_tensor() -> None:
    class Ragged(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            return cv2.flip(image, 1)

    plan = {"tests.migrate.loader.pictures:Pictures/__getitem__": TORCH}
    with pytest.raises(RuntimeError, match="equal size"):
        list(DeviceLoader(Ragged(), plan, batch_size=2))


def test_beside_a_migrator() -> None:
    with PipelineMigrator({"cv2.flip": TORCH}) as migrator:
        loader, expected = both(pictures.Pictures())
        same(list(loader), expected)
        cv2.flip(np.zeros((4, 4), np.uint8), 1)
    assert sum(row.migrated for row in migrator.report().rows) == 1


@pytest.mark.parametrize(
    ("plan", "options", "error", "words"),
    [
        (PLAN, {"batch_size": None}, ValueError, "batch_size"),
        ({"a": "cuda:0", "b": "cuda:1"}, {}, PlanError, "cuda:0, cuda:1"),
        ({"a": "cpu"}, {}, PlanError, "none"),
        ({"a": "nonsense:0:1"}, {}, PlanError, "nonsense"),
    ],
)
def test_bad_arguments(plan: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        DeviceLoader(pictures.Pictures(), plan, **options)
