"""Machines on which no file can be written: read-only disks, and full ones."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from devicecore.optional import package_dir

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the places are those of Linux")

# In a namespace of its own, so that the machine keeps what it has.
READ_ONLY = """\
set -e
for folder in /tmp /var/tmp /dev/shm /mnt; do mount -t tmpfs -o ro none $folder; done
cd /mnt
exec "$@"
"""
PLACES = ["read-only", "full"]


@cache
def has_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "--mount", "bash", "-c", READ_ONLY, "bash", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def python(place: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where no file can be written."""
    command = [sys.executable, *words]
    if place == "read-only":
        if not has_namespaces():
            pytest.skip("this user may mount nothing")
        if sys.prefix.startswith(("/tmp", "/var/tmp", "/mnt")):
            pytest.skip("Python itself lies where nothing would be seen any more")
        command = ["unshare", "--mount", "bash", "-c", READ_ONLY, "bash", *command]
    nowhere = "/proc/nowhere"
    gone = {"TMPDIR": nowhere, "HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    return subprocess.run(
        command,
        env={**os.environ, **gone, "DEVICECORE_CACHE_DIR": nowhere},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        # As on a full disk, each write to a file fails.
        preexec_fn=None if place == "read-only" else limit,
    )


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


PROGRAM = """\
import os, sys, tempfile
try:
    sys.exit(f"there is a place: {tempfile.gettempdir()}")
except FileNotFoundError:
    pass
if sys.argv[1] == "no memfd":  # a fake of systems without one
    del os.memfd_create
"""
CAPTURE = """\
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session
from devicecore.ort.log_capture import captured_log
from devicecore.ort.tiny_model import tiny_model
before = os.listdir("/proc/self/fd")
with captured_log(native=True) as lines:
    os.write(2, b"the driver speaks\\n")
    open_session(tiny_model(), SessionSpec(CPU_PROVIDER))
os.write(2, b"afterwards\\n")
assert os.listdir("/proc/self/fd") == before
print(lines)
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("memory", ["memfd", "no memfd"])
def test_a_capture_needs_no_folder(place: str, memory: str) -> None:
    done = python(place, "-c", PROGRAM + CAPTURE, memory)
    assert done.returncode == 0, done.stderr
    collected = (place, memory) == ("read-only", "memfd")
    assert done.stdout == ("['the driver speaks']\n" if collected else "[]\n")
    assert "afterwards\n" in done.stderr


OLD = """\
import numpy as np
from devicecore.errors import NotLiveError
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session, session
from devicecore.ort import session_creation
from devicecore.ort.tiny_model import tiny_model
session_creation.can_record = session.can_record = lambda _: False  # a fake of onnxruntime < 1.24
x = {"x": np.ones((2, 4), np.float32)}
print(open_session(tiny_model(), SessionSpec(CPU_PROVIDER)).run(x)["y"].shape)
import nxrt_ep_cpu
from pathlib import Path
library = next(Path(nxrt_ep_cpu.__file__).parent.glob("*cpu_plugin*"))
try:
    open_session(tiny_model(), SessionSpec("cpu_ep", library=str(library))).run(x)
except NotLiveError as error:
    print(error)
"""


@pytest.mark.parametrize("place", PLACES)
def test_where_no_profile_can_be_written_only_the_cpu_is_believed(place: str) -> None:
    pytest.importorskip("nxrt_ep_cpu")
    done = python(place, "-c", PROGRAM + OLD, "memfd")
    assert done.returncode == 0, done.stderr
    shape, refused = done.stdout.splitlines()
    assert shape == "(2, 4)"
    assert refused.startswith("cpu_ep is broken; ")
    assert refused.endswith("let TMPDIR name a folder that can be written, with room in it")


DOCTOR = "doctor --provider CPUExecutionProvider --model MODEL --json"
NO_FOLDER = "devicecore: no temporary folder can be made ("


@pytest.mark.parametrize(
    ("place", "words", "code", "said"),
    [
        ("read-only", "devices", 0, "CPU:0"),
        ("read-only", "resolve", 0, "because"),
        ("read-only", DOCTOR, None, '"findings"'),
        ("full", DOCTOR, None, '"findings"'),
        ("read-only", "bench MODEL", 1, NO_FOLDER),
        ("full", "bench MODEL", 1, NO_FOLDER),
        ("read-only", "demo", 1, "devicecore: the image "),
        ("read-only", "run -m this", 0, "Beautiful is better"),
    ],
)
def test_every_command_goes_on_or_says_one_line(
    place: str, words: str, code: int | None, said: str, model: Path
) -> None:
    done = python(place, "-m", "devicecore", *words.replace("MODEL", str(model)).split())
    assert "Traceback" not in done.stderr
    assert "temporary directory" not in done.stdout  # as a cause that nothing works
    if code is not None:
        assert done.returncode == code
    assert said in (done.stderr if code == 1 else done.stdout)
    if code == 1:
        ours = [line for line in done.stderr.splitlines() if "telemetry" not in line]
        assert len(ours) == 1


@pytest.fixture
def model() -> Path:
    """A model that is not below the folders that are covered."""
    folder = package_dir("onnxruntime")
    assert folder is not None
    return folder / "datasets" / "sigmoid.onnx"
