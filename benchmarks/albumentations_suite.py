"""The public tests of albumentations, with OpenCV's functions migrated to torch's kernels.

``python -m benchmarks.albumentations_suite FOLDER results.json COMMIT`` where FOLDER has its
sources at tag 2.0.8, and the packages that its tests need are installed. They run as they are, then
with every migrated call compared with OpenCV's own answer, with exact kernels alone, and with those
that are within a tolerance; all are to have the same outcomes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from xml.etree import ElementTree as ET

import cv2
from attrs import field, frozen

from benchmarks import intercepting
from devicecore.migrate.plan.optimization_plan import Residency

if TYPE_CHECKING:
    from devicecore.kernels import Exactness

KEPT = Path(__file__).parent / "results/albumentations-suite.json"
PROCESSES = 2
# Kinds of reasons for which OpenCV answered calls of a function, in the results.
MOST_REASONS = 4
FRAMES = ("albumentations.Compose",)
PACKAGES = ("albumentations", "albucore", "numpy", "opencv-python-headless", "torch")
UNDECLARED = "its result was not"


@frozen
class Way:
    """One way to run the tests.

    Attributes:
        accept: The loosest promise that is taken; None to run them as they are.
        verify: Of how many migrated calls one is also computed by OpenCV; 0 for none.
    """

    accept: Exactness | None = None
    verify: int = 0


WAYS = {
    "as they are": Way(),
    "each call compared": Way("exact", verify=1),
    "exact kernels": Way("exact"),
    "kernels within tolerance": Way("tolerance"),
    "kernels within tolerance, each call compared": Way("tolerance", verify=1),
}
PLAIN, EXACT, TOLERANT = "as they are", "exact kernels", "kernels within tolerance"


@frozen
class Found:
    """What came of one run.

    Attributes:
        outcomes: What became of each test.
        seconds: How long it took.
        processes: What each process found.
    """

    outcomes: dict[str, str]
    seconds: float
    processes: list[dict[str, Any]] = field(factory=list)

    def undeclared(self) -> list[str]:
        """Return the paths whose results were not as promised."""
        return sorted({row["path"] for row, why in self._reasons() if why.startswith(UNDECLARED)})

    def not_put_back(self) -> list[str]:
        """Return the names in OpenCV's module that were not afterwards what they were before."""
        return sorted({name for each in self.processes for name in each["not put back"]})

    def counts(self) -> dict[str, Any]:
        """Return how many calls there were of each function, and why OpenCV answered some."""
        calls, migrated, seconds = Counter[str](), Counter[str](), Counter[str]()
        why: dict[str, Counter[str]] = {}
        for row in self._rows():
            name = row["path"].rpartition("/")[2].removeprefix("cv2:")
            calls[name] += row["calls"]
            migrated[name] += row["migrated"]
            seconds["device"] += row["device_s"]
            seconds["host"] += row["host_s"]
            why.setdefault(name, Counter()).update(row["reasons"])
        functions = {
            name: {
                "calls": calls[name],
                "migrated": migrated[name],
                "why not": dict(why[name].most_common(MOST_REASONS)),
            }
            for name in sorted(calls)
        }
        return {
            "replaced functions": max((each["replaced"] for each in self.processes), default=0),
            "calls": calls.total(),
            "migrated": migrated.total(),
            "fell back": calls.total() - migrated.total(),
            "seconds in calls": {name: round(each, 1) for name, each in seconds.items()},
            "functions": functions,
        }

    def share(self) -> float:
        """Return the share of the calls that were migrated."""
        rows = self._rows()
        return float(sum(row["migrated"] for row in rows) / sum(row["calls"] for row in rows))

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of OpenCV's functions; a frame around them is none of them."""
        rows = [row for each in self.processes for row in each["rows"]]
        return [row for row in rows if row["path"].rpartition("/")[2].startswith("cv2:")]

    def _reasons(self) -> list[tuple[dict[str, Any], str]]:
        rows = [row for each in self.processes for row in each["rows"]]
        return [(row, why) for row in rows for why in row["reasons"]]


def run(suite: Path, way: Way, residency: Residency) -> Found:
    """Run the tests one way."""
    words: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if way.accept is not None:
            plan = intercepting.plan_for(way.accept, residency, FRAMES)
            intercepting.write(folder, plan, way.verify)
            words = ["-p", "benchmarks.intercepting"]
        started = time.perf_counter()
        outcomes = _outcomes(suite, folder, words)
        seconds = time.perf_counter() - started
        found = intercepting.read(folder) if words else []
    if words and len(found) != PROCESSES + 1:  # and the one that hands out the tests
        msg = f"{len(found)} of {PROCESSES + 1} processes have told what they found"
        raise RuntimeError(msg)
    return Found(outcomes, seconds, found)


def _outcomes(suite: Path, folder: Path, words: list[str]) -> dict[str, str]:
    """Run the tests, and return what became of each."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"-n{PROCESSES}"]
    paths = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {intercepting.FOLDER: str(folder), "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, "--continue-on-collection-errors", f"--junitxml={report}", *words, "tests"],
        cwd=suite,
        env=os.environ | own,
        check=False,  # a few of its tests fail with the newest packages
    )
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it just now
        states = {each.tag for each in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}::{case.get('name')}"] = next(iter(states), "passed")
    return found


def _changed(before: dict[str, str], after: dict[str, str]) -> dict[str, list[str | None]]:
    return {
        name: [before.get(name), after.get(name)]
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def result(found: dict[str, Found], residency: str, commit: str) -> dict[str, Any]:
    """Return what is kept of all runs."""
    before = found[PLAIN].outcomes
    migrated = {name: each for name, each in found.items() if name != PLAIN}
    changed = {name: _changed(before, each.outcomes) for name, each in migrated.items()}
    return {
        "versions": {name: version(name) for name in PACKAGES},
        "features": cv2.getCPUFeaturesLine(),
        "commit": commit,
        "residency": residency,
        "outcomes": {name: dict(Counter(each.outcomes.values())) for name, each in found.items()},
        "changed outcomes": {name: each for name, each in changed.items() if each},
        "undeclared differences": {
            name: paths for name, each in found.items() if (paths := each.undeclared())
        },
        "not put back": sorted({name for each in found.values() for name in each.not_put_back()}),
        "exact, share": found[EXACT].share(),
        "within tolerance, share": found[TOLERANT].share(),
        "seconds": {name: round(each.seconds, 1) for name, each in found.items()},
        "runs": {name: each.counts() for name, each in migrated.items()},
    }


def main() -> int:
    """Run the tests all ways, write the JSON and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("commit")
    parser.add_argument("--residency", choices=get_args(Residency), default="plain")
    arguments = parser.parse_args()
    suite, residency = arguments.suite.resolve(), arguments.residency
    found = {name: run(suite, way, residency) for name, way in WAYS.items()}
    kept = result(found, residency, arguments.commit)
    arguments.out.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({name: each for name, each in kept.items() if name != "runs"}, indent=2))
    wrong = ("changed outcomes", "undeclared differences", "not put back")
    return int(any(kept[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
