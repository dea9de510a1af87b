"""ONNX's conformance suite through our backend on one provider, beside ONNX Runtime's own backend.

Run it in the repository: ``python -m benchmarks.conformance --provider openvino --json FILE``; it
needs ``onnx``, ONNX Runtime and the provider's package, and this repository on ``PYTHONPATH`` with
``factories``. ``--expect`` writes down which cases do not pass, which the tests then hold on to,
``--record`` keeps the counts in ``results/``. Prints a short table last.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.device import Device
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.runtime import default_runtime
from devicecore.testing import OnnxBackend, run_onnx_suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onnx.backend.base import Backend

    from devicecore.testing import CaseResult

RESULTS = Path(__file__).parent / "results" / "conformance.json"
EXPECTED = Path(__file__).parents[1] / "tests" / "conformance" / "expected"
PEER = "onnxruntime"


@frozen
class Engine:
    """Something that the suite runs on.

    Attributes:
        packages: Whose versions decide what passes; a group of equals has one that is installed.
        gate: How many cases are to pass.
        device_type: The type of the device that our factories make for it.
        plugin: The module of a plug-in that has no factory.
        provider: That plug-in's provider.
    """

    packages: tuple[str, ...]
    gate: int
    device_type: str = ""
    plugin: str = ""
    provider: str = ""


ENGINES = {
    "cpu": Engine(("onnxruntime",), 1840, "CPU"),
    "cpu_ep": Engine(("onnxruntime", "nxrt-ep-cpu"), 1787, plugin="nxrt_ep_cpu", provider="cpu_ep"),
    "openvino": Engine(("onnxruntime", "onnxruntime-ep-openvino"), 1671, "OPENVINO"),
    "openvino-in-tree": Engine(("onnxruntime-openvino",), 0, "OPENVINO"),
    "webgpu": Engine(("onnxruntime", "onnxruntime-ep-webgpu"), 1782, "WEBGPU"),
    PEER: Engine(("onnxruntime",), 0),
}


def installed_versions(engine: str) -> dict[str, str]:
    """Return the versions that decide what passes, of those packages that are installed."""
    found = {}
    for package in ("onnx", "ml_dtypes", *ENGINES[engine].packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def backend_on(engine: str) -> type[Backend]:
    """Return the backend to run the suite on.

    Raises:
        ImportError: The provider's package is not installed.
        NotLiveError: The provider has no device that works here.
    """
    if engine == PEER:
        peer: type[Backend] = import_module("onnxruntime.backend.backend").OnnxRuntimeBackend
        return peer
    cpu = Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER))
    found = cpu if engine == "cpu" else _device(ENGINES[engine])

    class OnThatDevice(OnnxBackend):
        on = found
        spare = None if found is cpu else cpu
        runs = 1 if engine == "webgpu" else 3  # in software it takes minutes

    return OnThatDevice


def _device(engine: Engine) -> Device:
    if engine.plugin:
        library = import_module(engine.plugin).get_library_path()
        spec = SessionSpec(engine.provider, {}, 0, library)
        return Device("/device:NPU:0", device_class="NPU", session=spec)
    return default_runtime().device(engine.device_type, "onnx")


def summary(engine: str, results: Sequence[CaseResult]) -> dict[str, Any]:
    """Return what came of *results*, for a JSON file; nothing in it names the machine."""
    outcomes = Counter(result.outcome for result in results)
    nodes: Counter[str] = Counter()
    for result in results:
        nodes.update(result.nodes)
    passed = [each for each in results if each.outcome == "passed"]
    host = sum(set(each.nodes) == {CPU_PROVIDER} for each in passed) if engine != "cpu" else 0
    return {
        "provider": engine,
        "passed": outcomes["passed"],
        "passed_on_the_cpu_alone": host,
        "skipped": outcomes["skipped"],
        "failed": outcomes["failed"],
        "nodes": dict(nodes),
        "seconds": round(sum(result.seconds for result in results), 1),
        "versions": installed_versions(engine),
        "python": platform.python_version(),
        "cpu": _cpu(),
        "not_passed": not_passed(results),
    }


def not_passed(results: Iterable[CaseResult]) -> dict[str, list[str]]:
    """Return the names of the cases that did not pass, by reason."""
    found: dict[str, list[str]] = {}
    for result in sorted(results, key=lambda each: (each.reason, each.name)):
        if result.outcome != "passed":
            found.setdefault(result.reason, []).append(result.name)
    return found


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _expect(engine: str, found: dict[str, Any]) -> None:
    kept = {name: found[name] for name in ("versions", "cpu", "passed", "not_passed")}
    EXPECTED.mkdir(parents=True, exist_ok=True)
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    (EXPECTED / f"{engine}.json").write_text(text, encoding="utf-8")


def record(found: dict[str, Any]) -> None:
    """Keep the counts of *found* beside those of the other engines."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    reasons = {reason: len(names) for reason, names in found["not_passed"].items()}
    counts = {
        name: value for name, value in found.items() if name not in ("provider", "not_passed")
    }
    about = {"gate": ENGINES[found["provider"]].gate or None, "date": f"{datetime.now(UTC):%F}"}
    known[found["provider"]] = {**counts, "reasons": reasons, **about, "commit": _commit()}
    ordered = {name: known[name] for name in ENGINES if name in known}
    text = json.dumps(ordered, indent=1, ensure_ascii=False) + "\n"
    RESULTS.write_text(text, encoding="utf-8")


def _commit() -> str | None:
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def _table(found: dict[str, Any]) -> Iterable[str]:
    gate = ENGINES[found["provider"]].gate
    verdict = f" (gate {gate} {'ok' if found['passed'] >= gate else 'MISSED'})" if gate else ""
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    yield f"{found['provider']}: {versions}, Python {found['python']}, {found['cpu']}"
    yield f"  passed   {found['passed']:5}{verdict}"
    if host := found["passed_on_the_cpu_alone"]:
        yield f"    of these on the CPU alone {host}"
    yield f"  skipped  {found['skipped']:5} no kernel"
    yield f"  failed   {found['failed']:5}"
    for reason, names in found["not_passed"].items():
        if reason == "no kernel":
            continue
        yield f"    {reason:20} {len(names):5}"
    nodes = ", ".join(f"{name} {count}" for name, count in found["nodes"].items())
    yield f"  nodes    {nodes or 'not known'}"
    yield f"  seconds  {found['seconds']:7}"


def main() -> None:
    """Run the suite, print the table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", choices=ENGINES, default="cpu")
    parser.add_argument("--names", default="", help="a regular expression that names must fit")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--details", type=Path, help="where it goes what each failed case said")
    parser.add_argument("--expect", action="store_true", help="hold the tests to this run")
    parser.add_argument("--record", action="store_true", help="keep the counts in results/")
    arguments = parser.parse_args()
    backend = backend_on(arguments.provider)
    logging.getLogger("devicecore").setLevel(logging.ERROR)  # each move of a model is one line
    results = []
    with tempfile.TemporaryDirectory() as models:
        os.environ["ONNX_MODELS"] = models
        for result in run_onnx_suite(backend, names=arguments.names):
            results.append(result)
            if sys.stderr.isatty():
                print(f"\r{len(results):5} {result.name:.60}\x1b[K", end="", file=sys.stderr)
    found = summary(arguments.provider, results)
    if arguments.json:
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        arguments.json.write_text(text, encoding="utf-8")
    if arguments.details:
        said = [f"{each.name}\t{each.reason}\t{each.detail!r}" for each in results if each.reason]
        arguments.details.write_text("\n".join(said) + "\n", encoding="utf-8")
    if arguments.record:
        record(found)
    if arguments.expect:
        _expect(arguments.provider, found)
    print("\n".join(_table(found)))


if __name__ == "__main__":
    main()
