"""ONNX's conformance suite on each provider: what passed once goes on passing.

``expected/`` holds, for each provider, the cases that do not pass and why. After a change of
versions, or when more of them pass, ``python -m benchmarks.conformance --provider NAME --expect``
writes it anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.errors import NotLiveError

if TYPE_CHECKING:
    from collections.abc import Mapping

for needed in ("onnx", "onnxruntime", "ml_dtypes"):
    pytest.importorskip(needed)

from benchmarks.conformance import (  # noqa: E402 - it imports what may be missing
    ENGINES,
    EXPECTED,
    backend_on,
    installed_versions,
    summary,
)

ROOT = Path(__file__).parents[2]
CASES = 2033


def expected(engine: str) -> dict[str, Any]:
    """Return what did not pass when it was written down, with the versions of then."""
    file = EXPECTED / f"{engine}.json"
    if not file.is_file():
        pytest.skip(f"nobody has written down what passes on {engine}")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def expected_here(engine: str) -> dict[str, Any]:
    """Return the same, or skip where other versions are installed."""
    found, here = expected(engine), installed_versions(engine)
    if found["versions"] != here:
        pytest.skip(f"written down for {found['versions']}, installed are {here}")
    return found


def hold(engine: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Fail if a case that passed does not; tell of those that now do."""
    before, after = reasons(was), reasons(now)
    assert now["passed"] + now["skipped"] + now["failed"] == CASES
    worse = {name: reason for name, reason in after.items() if name not in before}
    assert worse == {}
    assert now["passed"] >= ENGINES[engine].gate
    if better := sorted(before.keys() - after.keys()):
        warnings.warn(f"on {engine} these now pass: {', '.join(better)}", stacklevel=2)


def reasons(found: Mapping[str, Any]) -> dict[str, str]:
    return {name: reason for reason, names in found["not_passed"].items() for name in names}


def counts(*, passed: int, **not_passed: list[str]) -> dict[str, Any]:
    others = sum(map(len, not_passed.values()))
    return {"passed": passed, "skipped": 0, "failed": others, "not_passed": not_passed}


def test_a_case_that_no_longer_passes_is_named() -> None:
    was, now = counts(passed=2032, values=["a"]), counts(passed=2031, values=["a"], kernel=["b"])
    with pytest.raises(AssertionError, match=r"\{'b': 'kernel'\}"):
        hold("cpu", was, now)


def test_a_case_that_passes_now_is_told_of() -> None:
    was, now = counts(passed=2031, values=["a"], kernel=["b"]), counts(passed=2032, values=["a"])
    with pytest.warns(UserWarning, match="on cpu these now pass: b$"):
        hold("cpu", was, now)


def test_too_few_cases_are_no_pass() -> None:
    with pytest.raises(AssertionError):
        hold("cpu", counts(passed=2032), counts(passed=2032))
    many = [str(number) for number in range(CASES - 1839)]
    with pytest.raises(AssertionError, match="1839 >= 1840"):
        hold("cpu", counts(passed=1839, values=many), counts(passed=1839, values=many))


def run_here(engine: str) -> dict[str, Any]:
    """Run the suite in this process."""
    from devicecore.testing import run_onnx_suite

    return summary(engine, list(run_onnx_suite(backend_on(engine))))


def run_apart(
    engine: str, python: Path | str, packages: Path, folder: Path, variables: Mapping[str, str]
) -> Any:
    """Run the suite in a process of its own, and return what it wrote."""
    file = folder / "found.json"
    words = [str(python), "-m", "benchmarks.conformance", "--provider", engine, "--json", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(packages), **variables}
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.long
@pytest.mark.filterwarnings("default:on .* these now pass:UserWarning")
@pytest.mark.parametrize(
    "engine", ["cpu", "cpu_ep", pytest.param("openvino", marks=pytest.mark.slow)]
)
def test_what_passed_goes_on_passing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was = expected_here(engine)
    monkeypatch.setenv("ONNX_MODELS", str(tmp_path))
    try:
        now = run_here(engine)
    except NotLiveError as error:
        pytest.skip(str(error))
    hold(engine, was, now)


@pytest.mark.slow
@pytest.mark.filterwarnings("default:on .* these now pass:UserWarning")
def test_what_passed_on_webgpu_goes_on_passing(
    our_packages: Path, swiftshader: dict[str, str], tmp_path: Path
) -> None:
    was = expected_here("webgpu")
    hold("webgpu", was, run_apart("webgpu", sys.executable, our_packages, tmp_path, swiftshader))


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info[:2] != (3, 11),
    reason="the pinned wheels are those of Linux and Python 3.11",
)
@pytest.mark.filterwarnings("default:on .* these now pass:UserWarning")
def test_what_passed_on_a_build_with_openvino_goes_on_passing(
    environment: Any, our_packages: Path, tmp_path: Path
) -> None:
    was = expected("openvino-in-tree")
    environment.pip("install", *(f"{name}=={number}" for name, number in was["versions"].items()))
    now = run_apart("openvino-in-tree", environment.python, our_packages, tmp_path, {})
    assert now["versions"] == was["versions"]
    hold("openvino-in-tree", was, now)
