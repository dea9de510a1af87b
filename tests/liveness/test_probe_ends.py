"""Probes end with who asked, and nobody who pressed Ctrl-C waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # its types are another package
import pytest
from filelock import FileLock

UNRULY = Path(__file__).parents[1] / "plugins" / "unruly"
ASK = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup leaves it ignored
from devicecore import FactoryRegistry, Registration
registry = FactoryRegistry()
registry.register(Registration("NPU", "unruly:LeavesAProcessAndHangs", 1, "unruly", "Hangs"))
def press():
    print("asks", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    registry.explain(deep=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.fixture
def asking(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASK],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(UNRULY)]),
            "DEVICECORE_PROBE_TIMEOUT": "3600",
            "DEVICECORE_CACHE_DIR": str(tmp_path),
            "UNRULY_PID_FILE": str(tmp_path / "pid"),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_probe_and_what_it_started_end_with_their_parent(
    asking: subprocess.Popen[str], tmp_path: Path
) -> None:
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert asking.poll() is None
        time.sleep(0.05)
    left = [psutil.Process(int((tmp_path / "pid").read_text()))]
    left += psutil.Process(asking.pid).children()
    asking.kill()
    asking.communicate()
    assert psutil.wait_procs(left, timeout=60)[1] == []


def test_ctrl_c_is_heard_while_another_process_probes(
    asking: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "evidence").mkdir(mode=0o700, exist_ok=True)
    asking.kill()
    asking.communicate()
    with FileLock(tmp_path / "evidence" / "probe.lock"):
        again = subprocess.Popen(
            asking.args,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*sys.path, str(UNRULY)]),
                "DEVICECORE_CACHE_DIR": str(tmp_path),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert again.stdout
        assert again.stdout.readline() == "asks\n"
        time.sleep(1)  # it then waits for the lock; before that, it is heard as well
        assert again.communicate("now\n", timeout=60)[0] == "interrupted\n"
