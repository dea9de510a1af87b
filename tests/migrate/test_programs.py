"""Unchanged programs give what they give without the migrator, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it asks the network for news otherwise

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after the variable
from devicecore.scope import device_scope  # noqa: E402
from tests.cv.differential import IS_OLD, photo  # noqa: E402 - it imports cv2
from tests.migrate.sites import assert_same  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TORCH = {"device": "cpu", "kernel": "torch"}
SCOPED = TORCH | {"residency": "scoped"}
FUNCTIONS = (
    "resize",
    "cvtColor",
    "LUT",
    "warpAffine",
    "copyMakeBorder",
    "flip",
    "transpose",
    "split",
    "merge",
    "add",
    "multiply",
    "addWeighted",
    "threshold",
    "GaussianBlur",
    "blur",
    "medianBlur",
    "sepFilter2D",
)
PLAN = {f"cv2.{name}": TORCH for name in FUNCTIONS}

pytestmark = pytest.mark.usefixtures("no_trace")


@pytest.fixture(scope="module", autouse=True)
def _scopes_are_ready() -> None:
    with device_scope("cpu"):  # the first one looks at imports from then on
        pass


# --- albumentations -------------------------------------------------------------------------------


def _pipelines() -> dict[str, Callable[[], Any]]:
    A = pytest.importorskip("albumentations")  # noqa: N806 - as everybody calls it
    return {
        "classification": lambda: [
            A.RandomResizedCrop((96, 96)),
            A.HorizontalFlip(),
            A.ColorJitter(p=1),
            A.GaussianBlur((3, 7)),
            A.Normalize(),
        ],
        "detection": lambda: [
            A.LongestMaxSize(128),
            A.PadIfNeeded(160, 160, border_mode=cv2.BORDER_CONSTANT, fill=114),
            A.HueSaturationValue(p=1),
            A.CLAHE(),
            A.MedianBlur((3, 5)),
        ],
        "geometry": lambda: [
            A.SmallestMaxSize(140, interpolation=cv2.INTER_AREA),
            A.Affine(scale=(0.8, 1.2), rotate=(-30, 30), p=1),
            A.RandomCrop(96, 96),
            A.Transpose(),
        ],
    }


def _augmented(made: Any) -> list[dict[str, Any]]:
    made.set_random_seed(5)
    mask = (photo()[:300, :260, 0] > 90).astype(np.uint8)
    pictures = [photo()[:300, :260], photo("coffee")[:300, :260]] * 2
    return [made(image=each.copy(), mask=mask.copy()) for each in pictures]


@pytest.mark.parametrize("key", ["calls", "frame", "scoped", "transforms"])
@pytest.mark.parametrize("name", ["classification", "detection", "geometry"])
def test_pipelines_of_albumentations(name: str, key: str) -> None:
    A = pytest.importorskip("albumentations")  # noqa: N806
    made = A.Compose(_pipelines()[name](), seed=5)
    expected = _augmented(made)
    plans: dict[str, Any] = {
        "calls": PLAN,
        "frame": {"albumentations.Compose": TORCH},
        "scoped": {"albumentations.Compose": SCOPED},
        "transforms": {f"albumentations.{type(each).__name__}": SCOPED for each in made},
    }
    with PipelineMigrator(plans[key]) as migrator:
        found = _augmented(made)
    assert_same(found, expected)
    rows = migrator.report().rows
    if key in {"scoped", "transforms"}:
        assert not [each.reasons for each in rows if "anew" in str(each.reasons)]
    assert sum(row.migrated for row in rows if "cv2:" in row.path) > 0 or IS_OLD


# --- scripts --------------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np, cv2
from cv2 import GaussianBlur as smooth

image = np.random.default_rng(3).integers(0, 256, (120, 160, 3), dtype=np.uint8)

def prepare(image, size=64):
    height, width = image.shape[:2]
    scale = size / max(height, width)
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    pad = size - small.shape[0]
    sides = pad // 2, pad - pad // 2, 0, 0
    small = cv2.copyMakeBorder(small, *sides, cv2.BORDER_CONSTANT, value=(114,) * 3)
    grey = cv2.cvtColor(smooth(small, (3, 3), 0), cv2.COLOR_BGR2GRAY)
    edges = cv2.Canny(grey, 50, 150)
    contours, _ = cv2.findContours(edges, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    return small, grey, edges, len(contours)

def main():
    small, grey, edges, count = prepare(image)
    place = np.zeros_like(small)
    again = cv2.flip(small, 1, dst=place)
    print(again is place, small.sum(), grey.sum(), edges.sum(), count, place.sum())
    print(cv2.add(grey, grey, dst=grey) is grey, grey.sum(), grey.flags.writeable)
    try:
        cv2.resize(image, (0, 0))
    except cv2.error as error:
        print(str(error).splitlines()[0], error.__cause__, error.__context__)
    try:
        cv2.cvtColor(cv2.UMat(small), cv2.COLOR_BGR2GRAY).get().sum()
        cv2.resize([image, image], (5, 5))
    except Exception as error:
        print(type(error).__name__)
    print([each.shape for each in cv2.split(small)], cv2.merge([grey, grey]).shape)
"""

MIGRATED = """
before = dict(vars(cv2)), smooth
from devicecore.migrate import PipelineMigrator
with PipelineMigrator({plan}) as migrator:
    main()
assert before == (dict(vars(cv2)), smooth)
assert list(before[0]) == list(vars(cv2))
assert sum(row.migrated for row in migrator.report().rows) >= {least}
"""


def _output(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "plan", [PLAN, {"prepare": TORCH}, {"prepare/cv2.resize": TORCH}, {"prepare": SCOPED}]
)
def test_a_script(plan: Any) -> None:
    expected = _output(SCRIPT + "main()")
    least = 0 if IS_OLD else 1 if "prepare/cv2.resize" in plan else 3
    found = _output(SCRIPT + MIGRATED.format(plan=plan, least=least))
    assert found == expected
    assert len(expected.splitlines()) == 5


OWN_KERNELS = """
import numpy as np, cv2
from devicecore.migrate import MigrationStrategy, PipelineMigrator, StrategyRegistry
from devicecore.migrate.patching.injector import PatchInjector
originals = dict(vars(cv2))
registry = StrategyRegistry()
registry.register("cv2.resize", MigrationStrategy(lambda image, size: "ours"))
image = np.zeros((4, 4), np.uint8)
with PipelineMigrator({"cv2.resize": {"device": "cpu", "kernel": "torch"}}, registry):
    assert cv2.resize(image, (2, 2)) == "ours"
    from devicecore.cv import native
    assert native.original("resize") is originals["resize"]
    import devicecore.cv
    assert devicecore.cv.resize(image, (2, 2)).shape == (2, 2)
assert dict(vars(cv2)) == originals
print("fine")
"""


def test_what_is_imported_of_devicecore_while_cv2_is_patched_has_the_originals() -> None:
    assert _output(OWN_KERNELS) == "fine\n"


LATER = """
import sys
from devicecore.migrate import PipelineMigrator
migrator = PipelineMigrator({plan})
assert "cv2" not in sys.modules
if {is_active}:
    migrator.activate()
import numpy as np, cv2
small = cv2.resize(np.arange(48, dtype=np.uint8).reshape(4, 4, 3), (2, 2))
assert (len(migrator.report().rows) == 1) is {is_active}
migrator.deactivate()
from devicecore.cv import native
own = {{name: value for name, value in vars(cv2).items() if callable(value)}}
print(small.tolist(), cv2.resize, [getattr(each, "__name__", type(each)) for each in sys.meta_path])
print([name for name, value in own.items() if native.original(name) is not value])
print(sorted((name, type(value).__name__) for name, value in vars(cv2).items()))
"""


def test_cv2_may_be_imported_later() -> None:
    plan = {"cv2.resize": TORCH}
    expected, found = (
        _output(LATER.format(plan=plan, is_active=is_active)) for is_active in (False, True)
    )
    assert found == expected
    assert expected.splitlines()[1] == "[]"


# --- rapidocr -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # another project's warnings
@pytest.mark.parametrize(
    "plan",
    [PLAN | {"cv2.warpPerspective": TORCH}, {"rapidocr.RapidOCR": SCOPED}],
    ids=["plain", "scoped"],
)
def test_rapidocr_reads_the_same(plan: Any) -> None:
    rapid = pytest.importorskip("rapidocr", exc_type=ImportError)
    engine = rapid.RapidOCR(params={"Global.log_level": "critical"})
    page = np.full((220, 420, 3), 255, np.uint8)
    for row, text in enumerate(["Hello world 2026", "devicecore", "unchanged programs"]):
        cv2.putText(page, text, (20, 50 + 60 * row), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2)
    expected = engine(page)
    with PipelineMigrator(plan) as migrator:
        found = engine(page)
    assert len(expected.txts) == 3
    assert found.txts == expected.txts
    assert found.scores == expected.scores
    assert_same(found.boxes, expected.boxes)
    assert sum(row.migrated for row in migrator.report().rows) > 0 or IS_OLD


# --- loaders --------------------------------------------------------------------------------------

LOADER = """
import sys
import numpy as np, cv2, torch
from torch.utils.data import DataLoader, Dataset
from devicecore.migrate import PipelineMigrator

class Folder(Dataset):
    def __init__(self):
        random = np.random.default_rng(1)
        images = [random.integers(0, 256, (40 + i, 50, 3), dtype=np.uint8) for i in range(10)]
        self.files = [cv2.imencode(".png", image)[1] for image in images]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = cv2.imdecode(self.files[index], cv2.IMREAD_COLOR)
        image = cv2.cvtColor(cv2.resize(image, (24, 24)), cv2.COLOR_BGR2RGB)
        if sys.argv[1] != "plain" and torch.utils.data.get_worker_info():
            assert cv2.getNumThreads() == 1
        return torch.from_numpy(image.transpose(2, 0, 1)).float() / 255, index

def start(_=None):
    if sys.argv[1] != "plain":
        global migrator
        key, _, residency = sys.argv[1].partition(" ")
        options = {"device": "cpu", "kernel": "torch", "residency": residency or "plain"}
        migrator = PipelineMigrator({key: options}).activate()
        # in the process that runs the calls they are migrated
        Folder()[0]
        assert any(row.migrated for row in migrator.report().rows if "resize" in row.path)

def main():
    workers, how = int(sys.argv[2]), sys.argv[3]
    if workers == 0 or how == "fork":
        start()
    loader = DataLoader(
        Folder(), batch_size=4, num_workers=workers,
        multiprocessing_context=how if workers else None,
        worker_init_fn=start if how == "spawn" else None,
    )
    for images, places in loader:
        print(images.shape, images.dtype, images.device, images.is_contiguous())
        print(images.double().sum().item(), places.tolist())

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("loader") / "loader.py"
    path.write_text(LOADER)
    return path


def _loaded(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(folder), *words], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plainly_loaded(folder: Path) -> str:
    return _loaded(folder, "plain", "0", "fork")


@pytest.mark.parametrize(("workers", "how"), [("0", "fork"), ("2", "fork"), ("2", "spawn")])
@pytest.mark.parametrize("key", ["cv2.resize", "Folder/__getitem__", "Folder/__getitem__ scoped"])
def test_a_loader(key: str, workers: str, how: str, folder: Path, plainly_loaded: str) -> None:
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    assert _loaded(folder, key, workers, how) == plainly_loaded
    assert len(plainly_loaded.splitlines()) == 6
