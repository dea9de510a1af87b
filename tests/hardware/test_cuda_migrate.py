"""`PipelineMigrator` on a real CUDA card: the same arrays, from threads and workers as well."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from devicecore.device_factory import default_registry
from devicecore.migrate import PipelineMigrator

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

pytestmark = pytest.mark.hardware

PLAN = {"cv2.resize": "cuda:0", "tests.hardware.test_cuda_migrate:Pictures/__getitem__": "cuda:0"}


class Pictures(torch.utils.data.Dataset):  # type: ignore[name-defined,misc] # it has no types
    """Pictures of noise, made smaller and smoother."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        picture = np.random.default_rng(index).integers(0, 256, (240, 320, 3), np.uint8)
        small = cv2.resize(picture, (160, 120))
        turned = cv2.warpAffine(small, cv2.getRotationMatrix2D((80, 60), 9, 1.1), (160, 120))
        return cv2.GaussianBlur(cv2.cvtColor(turned, cv2.COLOR_BGR2RGB), (5, 5), 0)


@pytest.fixture(autouse=True)
def _card() -> None:
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], "torch")
    if not found.is_live:
        pytest.skip(f"CUDA for torch is {found.state}: {found.reason}")


@pytest.fixture
def expected() -> list[Any]:
    return [Pictures()[index] for index in range(8)]


def test_a_dataset(expected: list[Any]) -> None:
    with PipelineMigrator(PLAN, strict=True, verify=2) as migrator:
        found = [Pictures()[index] for index in range(8)]
    for own, wanted in zip(found, expected, strict=True):
        assert type(own) is np.ndarray
        np.testing.assert_array_equal(own, wanted)
    rows = {row.path.rpartition("/")[2]: row for row in migrator.report().rows}
    for name in ("resize", "warpAffine", "cvtColor", "GaussianBlur"):
        assert rows[f"cv2:{name}"].migrated == 8
        assert rows[f"cv2:{name}"].device.startswith("CUDA:0")


def test_threads(expected: list[Any]) -> None:
    with PipelineMigrator(PLAN, strict=True), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(Pictures().__getitem__, range(8)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers(start: str, expected: list[Any]) -> None:
    loader = torch.utils.data.DataLoader(
        Pictures(), batch_size=2, num_workers=2, multiprocessing_context=start
    )
    with PipelineMigrator(PLAN):
        cv2.resize(np.zeros((8, 8), np.uint8), (4, 4))  # CUDA has started in the parent
        found = torch.cat(list(loader)).numpy()
    np.testing.assert_array_equal(found, expected)


def test_memory_does_not_grow() -> None:
    picture = np.zeros((64, 64, 3), np.uint8)
    with PipelineMigrator({"cv2.resize": "cuda:0"}, strict=True):
        for _ in range(100):
            cv2.resize(picture, (32, 32))
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        for _ in range(20_000):
            cv2.resize(picture, (32, 32))
        torch.cuda.synchronize()
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == before
