"""Programs of OpenCV's print the same when a plan moves their calls; none of them is edited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("skimage")

from devicecore.migrate import default_strategies
from tests.cv.differential import IS_OLD

if TYPE_CHECKING:
    from devicecore.migrate.plan.optimization_plan import Residency

SCRIPTS = Path(__file__).parent / "scripts"
PHOTOS = str(files("skimage").joinpath("data"))
RESIDENCIES: tuple[Residency, ...] = ("plain", "scoped")
# The functions that are named as frames, and what some kernel computes in all of the program.
PROGRAMS = {
    "detector": ("preprocess", {"resize", "copyMakeBorder"}),
    "scanner": ("scan", {"cvtColor", "warpPerspective", "medianBlur", "adaptiveThreshold"}),
    "tracker": ("find_ball", {"GaussianBlur", "cvtColor", "inRange", "erode", "dilate"}),
    "grading": ("graded", {"LUT", "addWeighted", "split", "merge", "equalizeHist"}),
    "pyramids": ("blend", {"pyrDown", "pyrUp", "subtract", "add"}),
    "matching": ("main", {"flip", "rotate", "warpAffine", "Sobel", "subtract"}),
}


def output(*words: str) -> str:
    """Return what a program prints; libraries' words about files go elsewhere."""
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | paths,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def printed(name: str) -> str:
    """Return what a program prints without us."""
    return output(str(SCRIPTS / f"{name}.py"), PHOTOS)


def run(name: str, plan: Any, folder: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """Return what a program prints by a plan, and the rows of the report by their paths."""
    folder.joinpath("plan.json").write_text(json.dumps(plan), encoding="utf-8")
    report = folder / "report.json"
    own = ("--plan", str(folder / "plan.json"), "--report", str(report), *words)
    said = output("-m", "devicecore", "run", *own, str(SCRIPTS / f"{name}.py"), PHOTOS)
    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
    return said, {row["path"]: row for row in rows}


def migrated(rows: dict[str, Any], inside: str = "") -> set[str]:
    """Return which of OpenCV's functions were migrated, of those inside of a frame."""
    return {
        path.rpartition("cv2:")[2]
        for path, row in rows.items()
        if row["migrated"] and "cv2:" in path and inside in path
    }


def quarantined(rows: dict[str, Any]) -> list[str]:
    """Return the reasons for which paths were given up."""
    reasons = [why for row in rows.values() for why in row["reasons"]]
    return [why for why in reasons if "not exact" in why or "faults" in why]


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_calls(name: str, tmp_path: Path) -> None:
    options = {"device": "cpu", "kernel": "torch"}
    plan = dict.fromkeys(default_strategies().names(["cv2"]), options)
    said, rows = run(name, plan, tmp_path, "--verify", "2")
    assert said == printed(name)
    assert len(said.splitlines()) >= 3
    assert quarantined(rows) == []
    assert migrated(rows) >= PROGRAMS[name][1] or IS_OLD


@pytest.mark.parametrize("residency", RESIDENCIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_calls_of_a_frame(name: str, residency: Residency, tmp_path: Path) -> None:
    frame = PROGRAMS[name][0]
    if name == "matching" and residency == "scoped":
        # Its outer frame gives an array to zlib, which takes none but numpy's: that one runs anew,
        # and prints what it has printed once more.
        frame = "edges"
    options = {"device": "cpu", "kernel": "torch", "residency": residency}
    said, rows = run(name, {frame: options}, tmp_path)
    assert said == printed(name)
    assert quarantined(rows) == []
    assert migrated(rows, frame) or IS_OLD
    assert rows[f"__main__:{frame}"]["calls"] > 0


def test_a_plan_that_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_MIGRATE", "off")
    said, rows = run("tracker", {"find_ball": {"device": "cpu", "kernel": "torch"}}, tmp_path)
    assert said == printed("tracker")
    assert rows == {}
