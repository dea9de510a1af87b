"""`DeviceLoader` with programs as people write them: the batches are those of torch's loader."""

from __future__ import annotations

import gc
import itertools
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import DeviceLoader  # noqa: E402 - after torch
from devicecore.migrate.loader.shm_blocks import SHM_BLOCKS  # noqa: E402
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.loader import programs  # noqa: E402
from tests.migrate.loader.batches import TORCH, same  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.usefixtures("no_trace"),
    pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels"),
]
PLAN = {
    f"cv2.{name}": TORCH
    for name in ("resize", "flip", "warpAffine", "cvtColor", "GaussianBlur", "add")
}
KINDS = [kind for kind in programs.SAMPLES if kind not in programs.OBJECTS]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("photos")
    return programs.write_photos(folder)


def check(make: Any, **options: Any) -> Any:
    """Fail unless both loaders give the same in two epochs."""
    options.setdefault("batch_size", 3)
    if "batch_sampler" in options:
        del options["batch_size"]
    options.setdefault("worker_init_fn", programs.seed_all)
    found: list[Any] = []
    made: Any = None
    for loader in (torch.utils.data.DataLoader, DeviceLoader):
        how = dict(options)
        if loader is DeviceLoader:
            how["plan"] = PLAN
        if "generator" in how:
            how["generator"] = torch.Generator().manual_seed(3)
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002 - programs use it
        torch.manual_seed(1)
        cv2.setRNGSeed(1)
        made = loader(make(), **how)
        found.append([list(made), list(made)])
        found[-1].append((random.random(), np.random.rand(), torch.rand(1).item()))  # noqa: NPY002
    same(found[1], found[0])
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_samples(kind: str, names: list[str]) -> None:
    check(lambda: programs.Photos(names, kind))


@pytest.mark.parametrize("kind", ["python", "numpy", "torch", "opencv", "dict", "mosaic"])
def test_workers(kind: str, names: list[str]) -> None:
    check(lambda: programs.Photos(names, kind), num_workers=2, shuffle=True)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["numpy", "namedtuple"])
def test_streams(kind: str, workers: int, names: list[str]) -> None:
    check(lambda: programs.Stream(names, kind), num_workers=workers)


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("object", programs.of_records),
        ("none", programs.without_none),
        ("python", programs.padded),
        ("dict", programs.as_lists),
        ("torch", torch.utils.data.default_collate),
        ("same_twice", programs.padded),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_collations(kind: str, function: Any, workers: int, names: list[str]) -> None:
    check(lambda: programs.Photos(names, kind), collate_fn=function, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True, "generator": True},
        {"sampler": programs.Backwards(7), "drop_last": True},
        {"batch_sampler": [[3], [0, 1, 2, 4], [6, 5]]},
        {"batch_size": 100},
        {
            "drop_last": False,
            "sampler": torch.utils.data.WeightedRandomSampler([1, 2, 3, 1, 2, 3, 1], 5),
        },
    ],
    ids=lambda options: next(iter(options)),
)
def test_orders(options: dict[str, Any], workers: int, names: list[str]) -> None:
    if workers and "batch_size" not in options:
        options = options | {"persistent_workers": True, "prefetch_factor": 1}
    check(lambda: programs.Photos(names, "python"), num_workers=workers, **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_datasets_of_datasets(workers: int, names: list[str]) -> None:
    data = torch.utils.data
    check(lambda: data.Subset(programs.Photos(names, "numpy"), [1, 5, 2]), num_workers=workers)
    check(
        lambda: data.ConcatDataset([programs.Photos(names, each) for each in ("torch", "torch")]),
        num_workers=workers,
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_arrays_in_objects_are_a_cause_of_their_own(workers: int, names: list[str]) -> None:
    dataset = programs.Photos(names, "object")
    options: Any = {"collate_fn": programs.of_records, "num_workers": workers}
    loader = DeviceLoader(dataset, PLAN, batch_size=3, **options)
    list(loader)
    rows = {row.path: row for row in loader.report().rows}
    assert (rows["samples"].calls, rows["samples"].migrated) == (7, 0)
    assert "objects (Record)" in next(iter(rows["samples"].reasons))


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_end_of_a_stream_is_no_sample(workers: int, names: list[str]) -> None:
    loader = check(lambda: programs.Stream(names, "numpy"), num_workers=workers)
    assert {row.path: row.calls for row in loader.report().rows}["samples"] == 2 * len(names)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_program_that_stops_early_leaves_no_shared_memory(
    persistent: bool, names: list[str]
) -> None:
    dataset = programs.Photos(names * 3, "backwards")
    options: Any = {"num_workers": 2, "persistent_workers": persistent, "prefetch_factor": 2}
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=2))
    loader = DeviceLoader(dataset, PLAN, batch_size=2, **options)
    known = []
    for stop in (1, 2, 3, 1, 2, 3, len(expected)):
        found = list(itertools.islice(loader, stop))
        same(found, expected[:stop])
        known.append(len(SHM_BLOCKS.names()))
    assert known[-1] <= (12 if persistent else 0)  # pieces are used again
    del loader
    gc.collect()
    assert not SHM_BLOCKS.names()
