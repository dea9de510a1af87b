"""A probe that does what it must not do costs only itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # its types are another package
import pytest

from devicecore.device_factory import DeviceFactory
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness.isolation import probe_in_child, probe_in_thread
from devicecore.liveness.probe_result import ProbeResult, probe

UNRULY = Path(__file__).parents[1] / "plugins" / "unruly"
# Long enough for a busy machine to start a Python, and to let what does not hang answer.
PATIENCE_S = 60.0
# For those that hang.
IMPATIENCE_S = 2.0


@pytest.fixture(autouse=True)
def _unruly_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(UNRULY)


@pytest.fixture
def unruly() -> Any:
    """Return the module, imported into this process."""
    return import_module("unruly")


@pytest.fixture
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that a probe writes the id of its process to."""
    file = tmp_path / "pid"
    monkeypatch.setenv("UNRULY_PID_FILE", str(file))
    return file


def asked(name: str, timeout_s: float = PATIENCE_S, framework: str | None = None) -> ProbeResult:
    return probe_in_child(f"unruly:{name}", framework, timeout_s)


def ends(pid: int) -> bool:
    """Return whether a process ends soon; a killed one that nobody waited for is a zombie."""
    for _ in range(400):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


class TestInAChild:
    def test_a_good_one_is_believed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "unruly", raising=False)  # of another test
        report = asked("WellBehaved")
        assert report.liveness.is_live
        assert report.priority == 300
        assert report.liveness.devices == (PhysicalDevice("UNRULY", 0, "GPU-0"),)
        assert report.liveness.frameworks["onnx"].is_live
        assert report.liveness.seconds > 0
        assert "unruly" not in sys.modules

    def test_a_framework_that_it_does_not_serve_is_absent(self) -> None:
        assert asked("WellBehaved", framework="torch").liveness.state == "absent"
        assert asked("WellBehaved", framework="onnx").liveness.is_live

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("Raises", "OSError: the driver said no"),
            ("RaisesWhenBuilt", "RuntimeError: no licence"),
            ("ExitsPython", "SystemExit: I am leaving"),
            ("Exits", "exit code 3 and no answer"),
            ("ExitsAsIfAllWereWell", "exit code 0 and no answer"),
            ("Crashes", "killed by SIGSEGV"),
            ("ReturnsNonsense", "returned 'yes, it is fine"),
            ("ReturnsNothing", "returned None"),
            ("ListsItsFrameworks", "Error: "),
            ("ListsNamesAsDevices", "Error: "),
            ("StatesAWordAsPriority", "very high"),
            ("NoSuchClass", "AttributeError"),
            ("Floods", "exit code 1 and no answer"),
        ],
    )
    def test_a_bad_one_is_broken_and_says_how(self, name: str, words: str) -> None:
        report = asked(name)
        assert report.liveness.state == "broken"
        assert words in report.liveness.reason
        assert "\n" not in report.liveness.reason
        assert len(report.liveness.reason) <= 300
        assert len(report.liveness.detail) <= 4000
        assert not report.liveness.is_live
        assert report.priority is None or isinstance(report.priority, int)

    def test_a_module_that_cannot_be_imported_is_broken(self) -> None:
        report = probe_in_child("unruly_import_error:Factory", None, PATIENCE_S)
        assert report.liveness.state == "broken"
        assert "no_such_driver_package" in report.liveness.reason
        assert "Traceback" in report.liveness.detail

    def test_what_it_said_before_it_died_is_the_detail(self) -> None:
        assert "Segmentation fault" in asked("Crashes").liveness.detail
        assert "I am leaving" in asked("ExitsPython").liveness.detail
        assert asked("Floods").liveness.detail.endswith("noise noise")

    def test_one_that_hangs_is_stopped(self) -> None:
        report = asked("Hangs", IMPATIENCE_S)
        assert report.liveness.state == "timed_out"
        assert "2 s" in report.liveness.reason
        assert "DEVICECORE_PROBE_TIMEOUT" in report.liveness.fix
        assert report.liveness.seconds >= IMPATIENCE_S

    def test_noise_does_not_spoil_an_answer(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert asked("FloodsAndAnswers").liveness.is_live
        assert capfd.readouterr() == ("", "")

    def test_dying_after_the_answer_does_not_spoil_it(self) -> None:
        assert asked("DiesAfterItsAnswer").liveness.is_live

    def test_spoiling_the_child_does_not_spoil_the_answer(self) -> None:
        path, folder = list(sys.path), Path.cwd()
        assert asked("SpoilsItsProcess").liveness.is_live
        assert (sys.path, Path.cwd()) == (path, folder)

    @pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no process groups")
    def test_a_process_that_holds_the_pipes_is_stopped(self, left_behind: Path) -> None:
        report = asked("LeavesAProcess")
        assert report.liveness.is_live
        assert ends(int(left_behind.read_text()))

    @pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no process groups")
    def test_a_process_of_one_that_hangs_is_stopped_too(self, left_behind: Path) -> None:
        report = asked("LeavesAProcessAndHangs", IMPATIENCE_S * 2)
        assert report.liveness.state == "timed_out"
        assert ends(int(left_behind.read_text()))

    def test_no_file_and_no_process_of_ours_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        before = set(psutil.Process().children())
        asked("Crashes")
        asked("Hangs", 0.5)
        assert list(tmp_path.iterdir()) == []
        assert set(psutil.Process().children()) == before

    def test_the_child_finds_what_the_parent_finds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "found_only_here.py").write_text("from unruly import WellBehaved\n")
        monkeypatch.syspath_prepend(tmp_path)
        assert probe_in_child("found_only_here:WellBehaved", None, PATIENCE_S).liveness.is_live


class Here(DeviceFactory):
    """A factory of this process."""

    device_type = "HERE"
    priority: int | None = 7
    frameworks: tuple[str, ...] = ("torch", "onnx")

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran" if deep else "metadata")

    def create_devices(self, options: object, name_prefix: str) -> list[object]:  # type: ignore[override]
        return []


class TestInAThread:
    """Where a child could not do it: the same answers, except for what kills the process."""

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("Raises", "OSError: the driver said no"),
            ("RaisesWhenBuilt", "RuntimeError: no licence"),
            ("ExitsPython", "SystemExit: I am leaving"),
            ("ReturnsNonsense", "returned 'yes, it is fine"),
            ("ReturnsNothing", "returned None"),
            ("ListsItsFrameworks", "Error: "),
            ("ListsNamesAsDevices", "Error: "),
            ("StatesAWordAsPriority", "very high"),
        ],
    )
    def test_a_bad_one_is_broken_and_says_how(self, name: str, words: str, unruly: Any) -> None:
        report = probe_in_thread(getattr(unruly, name), None, PATIENCE_S)
        assert report.liveness.state == "broken"
        assert words in report.liveness.reason

    def test_one_that_hangs_is_left_behind(self, unruly: Any) -> None:
        report = probe_in_thread(unruly.HangsForAWhile, None, 0.1)
        assert report.liveness.state == "timed_out"
        for thread in threading.enumerate():
            if thread.name == "devicecore-probe":
                thread.join()

    def test_a_good_one_is_believed(self) -> None:
        report = probe_in_thread(Here, None, PATIENCE_S)
        assert report.liveness.is_live
        assert report.priority == 7
        assert set(report.liveness.frameworks) == {"torch", "onnx"}


class TestAsking:
    def test_a_shallow_question_is_asked_shallowly(self) -> None:
        assert probe(Here(), None, deep=False).liveness.evidence == "metadata"
        assert probe(Here(), None, deep=True).liveness.evidence == "ran"

    def test_one_framework_is_answered_for_itself(self) -> None:
        assert set(probe(Here(), "torch").liveness.frameworks) == {"torch"}
        assert probe(Here(), "jax").liveness.state == "absent"

    def test_a_report_goes_through_json_unchanged(self) -> None:
        report = probe(Here(), None)
        assert ProbeResult.from_json(json.loads(json.dumps(report.to_json()))) == report

    def test_a_signal_has_a_name(self) -> None:
        assert signal.SIGSEGV.name in asked("Crashes").liveness.reason


@pytest.mark.parametrize(
    "press",
    [
        "os.kill(os.getpid(), signal.SIGINT)",
        "signal.pthread_kill(threading.get_ident(), signal.SIGINT)",
    ],
    ids=["to-the-process", "to-another-thread"],
)
def test_ctrl_c_stops_a_probe_that_hangs_and_leaves_no_evidence(press: str, tmp_path: Path) -> None:
    """Without that, the program would wait for the time-out, which is an hour here.

    The system may give the signal to any thread, and the main one then sleeps on.
    """
    code = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup leaves it ignored
from devicecore import FactoryRegistry, Registration
from devicecore.liveness.probe_process import running_probes
registry = FactoryRegistry()
registry.register(Registration("NPU", "unruly:Hangs", 1, "unruly", "Hangs"))
def press():
    while not running_probes:
        pass
    time.sleep(0.2)  # the main thread waits by then
    PRESS
threading.Thread(target=press, daemon=True).start()
try:
    registry.explain(deep=True)
except KeyboardInterrupt:
    print("interrupted")
"""
    told = subprocess.run(
        [sys.executable, "-c", code.replace("PRESS", press)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(UNRULY)]),
            "DEVICECORE_PROBE_TIMEOUT": "3600",
            "DEVICECORE_CACHE_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert told.stdout.strip() == "interrupted"
    assert list((tmp_path / "evidence").glob("*.json")) == []
