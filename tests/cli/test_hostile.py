"""Variables that mean nothing, and users that the machine does not know: no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from devicecore.cli import main

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = ["CACHE_DIR", "CACHE_MIB", "PREFER", "EXCLUDE", "PROBE_TIMEOUT", "MIGRATE"]
VALUES = [
    "inf",
    "nan",
    "9" * 5000,
    "-1",
    ",,,",
    "a\nb",
    "~nobody/x",
    "\udcff\udcfe",
    "/proc/nowhere",
]


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_variable_that_means_nothing_is_one_line_or_nothing(
    variable: str,
    value: str,
    cache_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(cache_dir.parent)  # a folder may have such a name
    monkeypatch.setenv(f"DEVICECORE_{variable}", value)
    code = main(["resolve", "cpu"])
    said = capsys.readouterr().err
    assert code in {0, 2}
    assert said.count("\n") == (code == 2)
    assert len(said) < 300
    if code:
        assert said.startswith(f"devicecore: DEVICECORE_{variable} is ")


@pytest.mark.parametrize(
    "command", ["devices", "resolve", "doctor cpu", "run -m this", "--version", "--help"]
)
def test_a_user_without_a_home_or_an_entry_in_passwd(command: str, tmp_path: Path) -> None:
    become = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
    if shutil.which("unshare") is None or subprocess.run([*become, "true"], check=False).returncode:
        pytest.skip("nobody can become another user here")
    gone = {"HOME", "USER", "LOGNAME", "XDG_CACHE_HOME", "DEVICECORE_CACHE_DIR"}
    done = subprocess.run(
        [*become, sys.executable, "-m", "devicecore", *command.split()],
        cwd=tmp_path,
        env={name: text for name, text in os.environ.items() if name not in gone},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
