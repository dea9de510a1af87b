"""The public tests of albumentations, with OpenCV's functions replaced by ours on torch's kernels.

``python -m benchmarks.albumentations_suite FOLDER results.json COMMIT`` where FOLDER has its
sources at tag 2.0.8, and the packages that its tests need are installed. They run twice, once with
OpenCV itself, and are to have the same outcomes; each replaced call is compared with OpenCV's
answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import cv2

from benchmarks.intercepting import FOLDER

KEPT = Path(__file__).parent / "results/albumentations-suite.json"
PROCESSES = 2
# Kinds of calls that OpenCV answered itself, in the results.
MOST_HOST = 40
PACKAGES = ("albumentations", "albucore", "numpy", "opencv-python-headless", "torch")


def outcomes(suite: Path, *words: str, folder: Path) -> dict[str, str]:
    """Run the tests, and return what became of each."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"-n{PROCESSES}"]
    paths = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [*command, "--continue-on-collection-errors", f"--junitxml={report}", *words, "tests"],
        cwd=suite,
        env=os.environ | {FOLDER: str(folder), "PYTHONPATH": paths},
        check=False,  # a few of its tests fail with the newest packages
    )
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it just now
        states = {each.tag for each in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}::{case.get('name')}"] = next(iter(states), "passed")
    return found


def merged(folder: Path) -> dict[str, Any]:
    """Return what all processes counted together."""
    promises: Counter[tuple[str, str]] = Counter()
    differing: Counter[str] = Counter()
    host: Counter[str] = Counter()
    wrong: list[str] = []
    for path in folder.glob("*.json"):
        counts = json.loads(path.read_text(encoding="utf-8"))
        promises.update({(name, promise): count for name, promise, count in counts["promises"]})
        differing.update(counts["differing"])
        host.update(counts["host"])
        wrong += counts["wrong"]
    names = sorted({name for name, _ in promises})
    calls = Counter[str]()
    for (_, promise), count in promises.items():
        calls[promise] += count
    answered = calls.total() - calls["error"]
    return {
        "calls": dict(calls),
        "exact, share": calls["exact"] / answered,
        "within tolerance, share": (answered - calls["host"]) / answered,
        "values that differ": dict(differing),
        "undeclared differences": wrong,
        "functions": {
            name: {promise: count for (own, promise), count in promises.items() if own == name}
            for name in names
        },
        "answered by OpenCV": dict(host.most_common(MOST_HOST)),
    }


def main() -> int:
    """Run the tests both ways, write the JSON and print the figures."""
    suite = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as replaced:
        before = outcomes(suite, folder=Path(plain))
        after = outcomes(suite, "-p", "benchmarks.intercepting", folder=Path(replaced))
        counts = merged(Path(replaced))
    changed = {
        name: [before.get(name), after.get(name)]
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }
    result = {
        "versions": {name: version(name) for name in PACKAGES},
        "features": cv2.getCPUFeaturesLine(),
        "commit": " ".join(sys.argv[3:]),
        "outcomes with OpenCV": dict(Counter(before.values())),
        "outcomes with ours": dict(Counter(after.values())),
        "changed outcomes": changed,
        **counts,
    }
    Path(sys.argv[2]).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "functions"}, indent=2))
    return int(bool(changed or counts["undeclared differences"]))


if __name__ == "__main__":
    sys.exit(main())
