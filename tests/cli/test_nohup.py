"""Programs that outlive their terminal: they have inherited signals that are ignored."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("nohup") is None, reason="there is no nohup here")

# A shell starts what is in its background so, and nohup adds the end of the terminal.
IGNORING = "trap '' INT QUIT; exec nohup \"$@\""
PROGRAM = """\
import os, signal, threading
NAMES = ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM", "SIGCHLD", "SIGPIPE")
before = {name: signal.getsignal(getattr(signal, name)) for name in NAMES}
ended = threading.Event()
def interrupt():
    while not ended.wait(0.01):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGHUP)
threading.Thread(target=interrupt, daemon=True).start()
import devicecore
devicecore.default_registry().refresh()
print(devicecore.resolve("cpu", framework="onnx").device.name)
with devicecore.device_scope("cpu"):
    pass
ended.set()
assert {name: signal.getsignal(getattr(signal, name)) for name in NAMES} == before
assert before["SIGINT"] == before["SIGHUP"] == signal.SIG_IGN
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", IGNORING, "bash", sys.executable, *words],
        cwd=folder,
        env={**os.environ, "DEVICECORE_CACHE_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_probe_is_not_interrupted_and_changes_no_handler(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("/device:CPU:0\n")


def test_the_command_goes_on(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "devicecore", "devices")
    assert (done.returncode, done.stderr) == (0, "")
    assert "CPU:0" in done.stdout
