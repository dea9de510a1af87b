"""`DeviceLoader`: the errors of torch's loader, and the random numbers of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import DeviceLoader  # noqa: E402 - after torch
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.loader import pictures  # noqa: E402
from tests.migrate.loader.batches import PLAN, TORCH, both, same  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("no_trace"),
    pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels"),
]


@pytest.mark.parametrize("seeds", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_opencvs_random_numbers_of_samples_that_are_loaded_anew(workers: int, seeds: bool) -> None:
    dataset = pictures.Drawn(seeds=seeds)
    options: dict[str, Any] = {"batch_size": 3, "num_workers": workers, "worker_init_fn": seeded}
    cv2.setRNGSeed(5)
    expected = list(torch.utils.data.DataLoader(dataset, **options))
    cv2.setRNGSeed(5)
    loader = DeviceLoader(dataset, PLAN, **options)
    same(list(loader), expected)
    assert {row.path: row.fell_back for row in loader.report().rows}["samples"] == 2


def seeded(_worker: int) -> None:
    cv2.setRNGSeed(5)


BACKWARDS = [np.s_[::-1], np.s_[:, ::-1], np.s_[2:, ..., ::-1], np.s_[::-1, ::2], np.s_[::-2, 1:9]]


@pytest.mark.parametrize(
    ("place", "workers"), [*((each, 0) for each in BACKWARDS), (BACKWARDS[1], 1)], ids=str
)
def test_arrays_that_run_backwards_are_the_same_error(place: Any, workers: int) -> None:
    dataset = pictures.Backwards(place)
    for loader in (
        torch.utils.data.DataLoader(dataset, batch_size=3, num_workers=workers),
        DeviceLoader(dataset, {"cv2.resize": TORCH}, batch_size=3, num_workers=workers),
    ):
        with pytest.raises(ValueError, match="negative"):
            list(loader)


MAKERS = ["tensor", "tensor float32", "as_tensor", "as_tensor float32", "from_numpy", "asarray"]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("place", BACKWARDS, ids=str)
def test_tensors_of_arrays_that_run_backwards_are_the_same_error(place: Any, make: str) -> None:
    dataset = pictures.Backwards(place, make)
    for loader in (
        torch.utils.data.DataLoader(dataset, batch_size=3),
        DeviceLoader(dataset, {"cv2.resize": TORCH}, batch_size=3),
    ):
        with pytest.raises(ValueError, match="negative"):
            list(loader)


@pytest.mark.parametrize("make", MAKERS)
def test_tensors_of_arrays_that_run_forwards_are_batches(make: str) -> None:
    for place in (np.s_[::2], np.s_[3:4], np.s_[..., 1:]):
        loader, expected = both(pictures.Backwards(place, make), {"cv2.resize": TORCH})
        same(list(loader), expected)


def test_views_that_run_forwards_are_batches() -> None:
    for place in (np.s_[::2], np.s_[3:4], np.s_[..., 1:]):
        loader, expected = both(pictures.Backwards(place), {"cv2.resize": TORCH})
        same(list(loader), expected)
