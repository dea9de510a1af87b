"""`PipelineMigrator` on a real CUDA GPU: the same arrays, from threads and workers as well."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from devicecore.device_factory import default_registry
from devicecore.migrate import DeviceLoader, PipelineMigrator

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
def _gpu() -> None:
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


# --- frames that are recorded ---------------------------------------------------------------------

FRAMES = {
    f"tests.migrate.loader.pictures:{name}": {"device": "cuda:0", "residency": "scoped"}
    for name in ("prepared", "jittered")
}


def test_recorded_frames() -> None:
    from tests.migrate.loader import pictures

    image = np.random.default_rng(3).integers(0, 256, (240, 320, 3), np.uint8)
    for name in ("prepared", "jittered"):
        np.random.seed(5)  # noqa: NPY002 - programs use it
        expected = getattr(pictures, name)(image)
        with PipelineMigrator(FRAMES, strict=True, verify=2) as migrator:
            for _ in range(4):
                np.random.seed(5)  # noqa: NPY002
                found = getattr(pictures, name)(image)
                assert type(found) is np.ndarray
                assert found.strides == expected.strides
                np.testing.assert_array_equal(found, expected)
        assert all(row.migrated == row.calls for row in migrator.report().rows)


def noisy(image: Any) -> Any:
    """Return an image with noise, as programs of torch draw it."""
    return image + torch.rand(image.shape) * torch.randint(1, 9, (1,)).item()


def test_random_numbers_of_a_frame() -> None:
    image = torch.zeros(4, 5)
    torch.manual_seed(3)
    expected = [noisy(image), torch.rand(2)]
    torch.manual_seed(3)
    with PipelineMigrator({f"{__name__}:noisy": "cuda:0"}, strict=True) as migrator:
        found = [noisy(image), torch.rand(2)]
    assert [row.migrated for row in migrator.report().rows] == [1]
    for own, wanted in zip(found, expected, strict=True):
        assert torch.equal(own, wanted)


@pytest.mark.parametrize("kind", ["Pictures", "Named", "Held", "Reused", "Tensors"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("immutable", [False, True])
def test_a_loader(kind: str, workers: int, immutable: bool) -> None:
    from tests.migrate.loader import pictures
    from tests.migrate.loader.batches import same

    if immutable and kind == "Reused":
        pytest.skip("it changes what it promises not to change")
    dataset = getattr(pictures, kind)()
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    loader = DeviceLoader(
        dataset,
        FRAMES | {"tests.migrate.loader.pictures:Tensors/__getitem__": "cuda:0"},
        batch_size=3,
        num_workers=workers,
        strict=True,
        verify=2,
        immutable=immutable,
    )
    for batch, wanted in zip(loader, expected, strict=True):
        image = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
        assert image.is_cuda
        same(_on_host(batch), wanted)


def _on_host(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.cpu()
    if isinstance(batch, dict):
        return {key: _on_host(each) for key, each in batch.items()}
    return [_on_host(each) for each in batch] if isinstance(batch, list) else batch
