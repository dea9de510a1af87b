"""ONNX Runtime's words go into a list and nowhere else."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from devicecore.ort.build_notice import build_notice
from devicecore.ort.log_capture import captured_log

onnxruntime = pytest.importorskip("onnxruntime")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def session() -> Any:
    """A session whose failed runs are logged: it picks rows by number."""
    graph = helper.make_graph(
        [helper.make_node("Gather", ["x", "i"], ["y"])],
        "rows",
        [helper.make_tensor_value_info("x", 1, [2, 4]), helper.make_tensor_value_info("i", 7, [1])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString(), enable_fallback=0)


def fail(session: Any, row: int = 9) -> None:
    feeds = {"x": np.zeros((2, 4), np.float32), "i": np.array([row])}
    with pytest.raises(Exception, match=f"idx={row}"):
        session.run(None, feeds)


@pytest.fixture(params=["callback", "descriptor"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "callback" and not hasattr(onnxruntime, "set_default_logger_callback"):
        pytest.skip("onnxruntime < 1.32 has no logger callback")
    if request.param == "descriptor":  # as onnxruntime < 1.32 is
        monkeypatch.delattr(onnxruntime, "set_default_logger_callback", raising=False)
    return str(request.param)


def test_messages_are_collected_and_not_printed(way: str, session: Any, capfd: Capture) -> None:
    with captured_log() as log:
        fail(session)
    assert len(log) == 1
    assert log[0].startswith("Non-zero status code returned while running Gather node")
    assert capfd.readouterr() == ("", "")


def test_afterwards_messages_are_printed_again(way: str, session: Any, capfd: Capture) -> None:
    with captured_log():
        pass
    fail(session)
    assert "idx=9" in capfd.readouterr().err


def test_an_inner_capture_leaves_the_outer_one_working(way: str, session: Any) -> None:
    with captured_log() as outer:
        with captured_log() as inner:
            fail(session, 7)
        fail(session, 8)
    assert [("idx=7" in line) for line in inner] == [True]
    assert any("idx=8" in line for line in outer)


def test_an_error_in_the_block_ends_the_capture(way: str, session: Any, capfd: Capture) -> None:
    capture = captured_log()
    log = capture.__enter__()
    fail(session)
    assert capture.__exit__(KeyError, KeyError(), None) is not True
    assert len(log) == 1
    fail(session)
    assert "idx=9" in capfd.readouterr().err


def test_what_drivers_write_is_collected_on_request(
    session: Any, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests of this process may have left children that ended; one of them might have written.
    monkeypatch.setattr("devicecore.ort.inherited_stderr._children", lambda: (True, False))
    with captured_log(native=True) as log:
        os.write(2, b"Warning: no such driver\n")
        fail(session)
    assert "Warning: no such driver" in log
    assert any("idx=9" in line for line in log)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(
    not hasattr(onnxruntime, "set_default_logger_callback"), reason="needs a logger callback"
)
def test_threads_collect_their_own_messages(session: Any, capsys: Capture) -> None:
    logs: dict[int, list[str]] = {}
    meet = threading.Barrier(4)

    def work(row: int) -> None:
        with captured_log() as log:
            meet.wait()
            for _ in range(20):
                fail(session, row)
            meet.wait()
        logs[row] = log

    threads = [threading.Thread(target=work, args=(row,)) for row in range(10, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {row: len(log) for row, log in logs.items()} == dict.fromkeys(range(10, 14), 20)
    assert all(f"idx={row}" in line for row, log in logs.items() for line in log)


@pytest.mark.skipif(
    not hasattr(onnxruntime, "set_default_logger_callback"), reason="needs a logger callback"
)
def test_another_threads_messages_still_reach_stderr(session: Any, capsys: Capture) -> None:
    with captured_log() as log:
        other = threading.Thread(target=fail, args=(session, 6))
        other.start()
        other.join()
    assert log == []
    assert "idx=6" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child only writes and exits
def test_a_child_forked_meanwhile_has_its_own_stderr(capfd: Capture) -> None:
    with captured_log(native=True) as log:
        child = os.fork()
        if child == 0:
            os.write(2, b"from the child")
            os._exit(0)
        os.waitpid(child, 0)
    sys.stderr.flush()
    assert log == []
    assert capfd.readouterr().err == "from the child"


def test_our_own_words_are_not_collected(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devicecore.ort.build_notice._PATIENCE_S", 0.0)
    log, handler = logging.getLogger("devicecore"), logging.StreamHandler()
    log.addHandler(handler)
    shown = ""
    try:
        with captured_log(native=True) as lines:
            os.write(2, b"the provider's\n")
            with build_notice("TensorrtExecutionProvider", "m.onnx", at_once=False):
                while "so far" not in shown:  # before the build is over
                    shown += capfd.readouterr().err
            os.write(2, b"the provider's again\n")
    finally:
        log.removeHandler(handler)
    assert "the provider's" not in shown
    assert lines == ["the provider's", "the provider's again"]


QUIET = """
import os, sys
{what}
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session, probe_provider
from devicecore.ort.log_capture import captured_log
from devicecore.ort.tiny_model import tiny_model
with captured_log(native=True):
    open_session(tiny_model(), SessionSpec(CPU_PROVIDER))
sys.stdout.write(probe_provider(SessionSpec(CPU_PROVIDER)).state)
"""


@pytest.mark.parametrize(
    "what", ["sys.stderr = None", "os.close(2)", "os.close(2); sys.stderr = None"]
)
def test_a_program_without_a_console_opens_sessions(what: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", QUIET.format(what=what)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert told.stdout == "live"


def ran(text: str, word: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, as a file: children that are spawned read it."""
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, script, word],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


CHILD = """
import subprocess, sys, multiprocessing
from devicecore.ort.log_capture import captured_log
code = "import sys; sys.stdin.read(); print('the child speaks', file=sys.stderr, flush=True)"
def speak(pipe):
    pipe.recv()
    print("the child speaks", file=sys.stderr, flush=True)
if __name__ == "__main__":
    with captured_log(native=True):
        if sys.argv[1] == "subprocess":
            child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        else:
            context = multiprocessing.get_context(sys.argv[1])
            ours, theirs = context.Pipe()
            child = context.Process(target=speak, args=(theirs,))
            child.start()
    if sys.argv[1] == "subprocess":
        child.communicate(b"")
    else:
        ours.send("now")
        child.join()
    import threading
    for thread in threading.enumerate():
        if thread.name == "devicecore-stderr" and sys.argv[1] != "spawn":
            thread.join(30)
        elif thread.name == "devicecore-stderr":
            thread.join(1)  # multiprocessing's own helper lives as long as this process
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells who holds a file")
@pytest.mark.parametrize("start", ["subprocess", "spawn", "fork"])
def test_a_child_started_meanwhile_keeps_its_stderr(start: str, tmp_path: Path) -> None:
    done = ran(CHILD, start, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the child speaks") == 1


EARLY = """
import os, subprocess, sys, threading
from devicecore.ort.log_capture import captured_log
say = "import os, sys; [os.write(2, word.encode()) for word in sys.argv[1:]]; sys.stdin.read()"
ours = b"2026-01-01 00:00:00.0 [W:onnxruntime:Default, a.cc:1 F] only ours\\n"
lines = []
def child(*words, wait):
    process = subprocess.Popen([sys.executable, "-c", say, *words], stdin=subprocess.PIPE)
    process.stdin.close()
    if wait:
        process.wait()
    return process
with captured_log(native=True) as lines:
    os.write(2, ours)
    if sys.argv[1] == "ended":
        child("one\\n", "two\\n", wait=True)
    elif sys.argv[1] == "thread":
        thread = threading.Thread(target=child, args=("one\\n", "two\\n"), kwargs={"wait": True})
        thread.start()
        thread.join()
    elif sys.argv[1] == "inner":
        with captured_log(native=True):
            child("one\\n", wait=True)
        child("two\\n", wait=True)
    elif sys.argv[1] == "half a line":
        child("one\\ntw", wait=True)
        child("o\\n", wait=True)
    elif sys.argv[1] == "shell":
        subprocess.run("(sleep 0.3; echo two >&2) & echo one >&2", shell=True)
    elif sys.argv[1] == "much":
        child("x" * 99_999 + "\\n", "one\\n", "two\\n", wait=True)
    elif sys.argv[1] == "outlives":
        late = child("one\\n", wait=False)
    os.write(2, ours)
assert sum("only ours" in line for line in lines) == 2, lines
if sys.argv[1] == "outlives":
    late.wait()
    subprocess.run([sys.executable, "-c", say, "two\\n"], stdin=subprocess.DEVNULL)
if sys.argv[1] == "shell":
    import time
    time.sleep(1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are those of Unix")
@pytest.mark.parametrize(
    "when", ["ended", "thread", "inner", "half a line", "much", "shell", "outlives"]
)
def test_what_a_child_says_before_the_end_is_passed_on(when: str, tmp_path: Path) -> None:
    done = ran(EARLY, when, tmp_path)
    words = done.stderr.splitlines()
    if when == "much":
        assert words.pop(0) == "x" * 99_999
    if when == "outlives":
        words.sort()  # one of them is passed on, the other one had stderr itself
    assert (words, done.returncode) == (["one", "two"], 0)
