"""Keys for all functions of a module: those that have a strategy, and no others."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import PlanError  # noqa: E402 - after cv2
from devicecore.migrate import DeviceLoader, PipelineMigrator, StrategyRegistry  # noqa: E402
from devicecore.migrate.strategies import default_strategies  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TORCH = {"device": "cpu", "kernel": "torch"}
CLOSE = {**TORCH, "accept": "tolerance"}
CLOSE_OPTIONS = {"kernel": "torch", "accept": "tolerance"}
IMAGE = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)


def calls(migrator: PipelineMigrator) -> dict[str, int]:
    return {row.path: row.calls for row in migrator.report().rows}


@pytest.mark.parametrize("key", ["cv2.*", "cv2", "cv2:*"])
@pytest.mark.parametrize("form", ["mapping", "file"])
def test_all_functions_of_opencv(key: str, form: str, tmp_path: Path, no_trace: None) -> None:
    plan: Any = {key: TORCH}
    if form == "file":
        file = tmp_path / "plan.json"
        file.write_text(
            json.dumps({"version": 1, "paths": {key: "cpu"}, "defaults": CLOSE_OPTIONS})
        )
        plan = file
    before = dict(vars(cv2))
    with PipelineMigrator(plan) as migrator:
        changed = {name for name, value in vars(cv2).items() if value is not before[name]}
        cv2.flip(IMAGE, 1)
        cv2.resize(IMAGE, (4, 4))
        assert cv2.getNumThreads() > 0
        assert migrator.report().unmatched == []
    assert calls(migrator) == {"cv2:flip": 1, "cv2:resize": 1}
    known = {name.removeprefix("cv2.") for name in default_strategies().names(["cv2"])}
    assert {"flip", "resize", "GaussianBlur"} <= changed
    assert changed == known & before.keys()


@pytest.mark.parametrize(
    ("key", "function", "args", "path"),
    [
        ("numpy.*", "numpy.fft.fft", ([1.0, 2.0],), "numpy.fft:fft"),
        ("numpy.fft", "numpy.fft.fft", ([1.0, 2.0],), "numpy.fft:fft"),
        (
            "scipy.*",
            "scipy.signal.detrend",
            ([1.0, 2.0, 4.0],),
            "scipy.signal._signaltools:detrend",
        ),
        (
            "scipy.signal.*",
            "scipy.signal.detrend",
            ([1.0, 2.0],),
            "scipy.signal._signaltools:detrend",
        ),
        (
            "scipy.signal",
            "scipy.signal.detrend",
            ([1.0, 2.0],),
            "scipy.signal._signaltools:detrend",
        ),
        ("PIL.*", "PIL.Image.Image.resize", ("image", (4, 4)), "PIL.Image:Image/resize"),
        ("PIL.Image", "PIL.Image.Image.resize", ("image", (4, 4)), "PIL.Image:Image/resize"),
        (
            "skimage.transform",
            "skimage.transform.resize",
            (IMAGE, (4, 4)),
            "skimage.transform._warps:resize",
        ),
        ("torch.nn.*", "torch.nn.functional.cosine_similarity", (torch.ones(2, 2),) * 2, None),
    ],
)
def test_all_functions_of_other_modules(
    key: str, function: str, args: tuple[Any, ...], path: str | None
) -> None:
    pytest.importorskip(key.partition(".")[0])
    module, _, name = function.removeprefix("PIL.Image.").rpartition(".")
    if isinstance(args[0], str):
        image = importlib.import_module("PIL.Image")
        owner: Any = image.Image
        args = (image.fromarray(IMAGE), *args[1:])
    else:
        owner = importlib.import_module(module)
        args = tuple(np.array(each) if isinstance(each, list) else each for each in args)
    before = getattr(owner, name)(*args)
    with PipelineMigrator({key: CLOSE}) as migrator:
        after = getattr(owner, name)(*args)
    assert np.allclose(np.asarray(before), np.asarray(after))
    (row,) = migrator.report().rows
    assert row.calls == 1
    assert path in {None, row.path}


@pytest.mark.parametrize(
    ("plan", "own"),
    [
        ({"cv2.*": "cuda:7", "cv2.flip": TORCH}, True),
        ({"cv2.flip": TORCH, "cv2": "cuda:7"}, True),
        ({"cv2.*": "cuda:7", "**/cv2.flip": TORCH}, True),
        ({"cv2.*": "cuda:7", "made_frames.f/cv2.flip": TORCH}, True),
        ({"cv2.*": "cuda:7", "made_frames.f/cv2.*": TORCH}, True),
        ({"made_frames.f/cv2.*": "cuda:7", "made_frames.f/cv2.flip": TORCH}, True),
        ({"made_frames.f/cv2": "cuda:7", "**/cv2.flip": TORCH}, False),  # the longer one
        ({"cv2.*": TORCH, "cv2.resize": "cuda:7"}, True),
    ],
)
def test_the_key_of_a_function_goes_before(
    plan: dict[str, Any], own: bool, write: Callable[..., None]
) -> None:
    write(made_frames="import cv2\ndef f(x): return cv2.flip(x, 1)\n")
    made: Any = importlib.import_module("made_frames")
    with PipelineMigrator(plan) as migrator:
        made.f(IMAGE)
    (row,) = migrator.report().rows
    assert (row.migrated == 1) is own
    assert row.path.endswith("cv2:flip")


def test_the_key_of_the_nearest_module_goes_before() -> None:
    scipy_signal: Any = pytest.importorskip("scipy.signal")
    distance: Any = pytest.importorskip("scipy.spatial.distance")
    plan = {"scipy": CLOSE, "scipy.signal.*": "cuda:7"}
    with PipelineMigrator(plan) as migrator:
        scipy_signal.detrend(np.array([1.0, 2.0, 4.0]))
        distance.cdist(np.ones((2, 2)), np.ones((2, 2)))
    done = {row.path.rpartition(":")[2]: row.migrated for row in migrator.report().rows}
    assert done == {"detrend": 0, "cdist": 1}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("json.*", "no function of a module 'json' has a strategy; there are some in PIL, cv2,"),
        ("json", "no function of a module 'json' has a strategy; there are some in PIL, cv2,"),
        ("opencv.*", "no function of a module 'opencv' has a strategy; did you mean 'cv2.*'?"),
        ("OpenCV:*", "no function of a module 'OpenCV' has a strategy; did you mean 'cv2.*'?"),
        ("pillow.*", "no function of a module 'pillow' has a strategy; did you mean 'PIL.*'?"),
        ("cvv2.*", "no function of a module 'cvv2' has a strategy; did you mean 'cv2.*'?"),
        ("made_frames.*", "no function of a module 'made_frames' has a strategy"),
        ("numpy.linlag.*", "the module 'numpy' has no 'linlag'; near are 'linalg'"),
        ("numpy.random.*", "no function of a module 'numpy.random' has a strategy; there are"),
        ("torch.nn.Module.*", "'torch.nn.modules.module:Module' is of type type, no module"),
        ("cv2.resize.*", "'cv2:resize' is of type builtin_function_or_method, no module"),
        ("cv2/resize", "'cv2' is a module, which is no frame; write cv2.resize"),
    ],
)
def test_a_module_without_strategies(
    key: str, said: str, write: Callable[..., None], no_trace: None
) -> None:
    write(made_frames="def f(x): pass")
    with pytest.raises(PlanError) as caught:
        PipelineMigrator({"cv2.flip": TORCH, key: TORCH}).activate()
    assert str(caught.value).startswith(f"the plan, {key!r}: {said}")


def test_two_keys_for_the_same_module() -> None:
    with pytest.raises(PlanError, match=r"it and 'cv2' both match 'cv2:.*', and neither is longer"):
        PipelineMigrator({"cv2": TORCH, "cv2.*": TORCH}).activate()


def test_strategies_that_a_program_registers(write: Callable[..., None]) -> None:
    write(made_own="def twice(x): return 2 * x\nLIMIT = 3\nclass Made: pass\n")
    made: Any = importlib.import_module("made_own")
    registry = StrategyRegistry()
    registry.register("made_own.twice")(lambda x: 2 * x)
    registry.register("made_own.not_there")(lambda x: x)
    with PipelineMigrator({"made_own.*": TORCH}, registry) as migrator:
        assert made.twice(3) == 6
    assert calls(migrator) == {"made_own:twice": 1}


def test_modules_that_are_imported_later(tmp_path: Path) -> None:
    """Nothing is imported for the plan, and what comes later, or below, is migrated then."""
    program = tmp_path / "program.py"
    program.write_text("""
import sys
from devicecore.migrate import PipelineMigrator
how = {"device": "cpu", "kernel": "torch", "accept": "tolerance"}
with PipelineMigrator({"cv2": how, "scipy.*": how}) as migrator:
    assert not {"cv2", "scipy"} & sys.modules.keys()
    import cv2, numpy
    cv2.flip(numpy.zeros((4, 4), numpy.uint8), 1)
    import scipy
    assert "scipy.signal" not in sys.modules
    from scipy.signal import detrend
    detrend(numpy.arange(4.0))
    print(sorted(row.path for row in migrator.report().rows if row.migrated))
""")
    pytest.importorskip("scipy")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['cv2:flip', 'scipy.signal._signaltools:detrend']", done.stderr


class Pictures:
    """Images that are turned around."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: int) -> Any:
        return cv2.flip(IMAGE + at, 1)


@pytest.mark.parametrize("key", ["cv2.*", "{0}:Pictures/__getitem__/cv2"])
def test_a_loader(key: str) -> None:
    loader = DeviceLoader(Pictures(), {key.format(__name__): TORCH}, batch_size=2)
    (batch,) = loader
    assert (batch[1].numpy() == cv2.flip(IMAGE + 1, 1)).all()
    assert [row.migrated for row in loader.report().rows if row.path.endswith("cv2:flip")] == [2]


def test_a_program_by_a_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"cv2.*": TORCH}))
    (tmp_path / "program.py").write_text(
        "import cv2, numpy\n"
        "print(cv2.flip(numpy.arange(4, dtype=numpy.uint8).reshape(4, 1), 0).ravel())\n"
    )
    words = ["run", "--plan", "plan.json", "--report", "report.json", "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "devicecore", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("[3 2 1 0]\n", 0), done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert '"cv2:flip"' in json.dumps(report)
    assert report["unmatched"] == []
