"""Standard streams that are closed, full, or read by nobody: one line, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and /dev/full")

CALLS = [
    "devices",
    "devices --json",
    "resolve cpu",
    "resolve cpu --json",
    "doctor cpu",
    "doctor cpu --json",
    "demo --json",
    "--help",
    "--version",
    "bench --help",
]


def shell(text: str, folder: Path, python: str = sys.executable) -> tuple[int, str]:
    """Run *text*, in which ``devicecore`` stands for the command; return its exit code and words.

    Standard error goes to a file, so that the text may do what it wants with it.
    """
    text = text.replace("devicecore", f"{python} -m devicecore", 1)
    noise = folder / "noise"
    with noise.open("wb") as file:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {text}"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=file,
            check=False,
        )
    return done.returncode, noise.read_text()


def expect_one_line(said: str) -> None:
    assert said.startswith("devicecore: standard output cannot be written (")
    assert said.count("\n") == 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_lost_output_is_one_line_and_an_exit_code(call: str, where: str, tmp_path: Path) -> None:
    code, said = shell(f"devicecore {call} {where}", tmp_path)
    assert code == 1
    expect_one_line(said)


def test_without_a_buffer(tmp_path: Path) -> None:
    for call in ("--help", "devices"):
        code, said = shell(f"devicecore {call} >/dev/full", tmp_path, f"{sys.executable} -u")
        assert code == 1
        expect_one_line(said)


def test_the_figures_of_bench(tmp_path: Path) -> None:
    from devicecore.ort.tiny_model import tiny_model

    (tmp_path / "model.onnx").write_bytes(tiny_model())
    call = "devicecore bench model.onnx --devices cpu --runs 1"
    for words in (">&-", "--json >/dev/full"):
        code, said = shell(f"{call} {words}", tmp_path)
        assert code == 1
        expect_one_line(said)


@pytest.mark.parametrize("errors", ["2>&-", "2>/dev/full"])
def test_nobody_to_tell(errors: str, tmp_path: Path) -> None:
    for call, where, wanted in [
        ("devices", "", 0),
        ("devices", ">/dev/full", 1),
        ("devices", ">&-", 1),
        ("resolve nonsense", "", 2),
        ("resolve MPS", "", 1),
        ("nonsense", "", 2),
    ]:
        code, said = shell(f"devicecore {call} {where} {errors}", tmp_path)
        assert (code, said) == (wanted, ""), call


def test_an_error_does_not_go_to_standard_output(tmp_path: Path) -> None:
    code, said = shell("devicecore resolve nonsense 2>&- >out", tmp_path)
    assert (code, said, (tmp_path / "out").read_text()) == (2, "", "")


@pytest.mark.parametrize("where", [">&-", ">/dev/full", "| true"])
def test_an_error_as_data_that_is_lost_was_told_in_its_line(where: str, tmp_path: Path) -> None:
    code, said = shell(f"devicecore resolve nonsense --json {where}", tmp_path)
    assert (code, said.count("\n")) == (2, 1)
    assert "unknown device type 'nonsense'" in said


@pytest.mark.parametrize("call", ["doctor", "devices --json"])
def test_a_reader_that_leaves(call: str, tmp_path: Path) -> None:
    code, said = shell(f"devicecore {call} | true", tmp_path)
    assert (code, said) == (141, "")


@pytest.mark.parametrize("where", [">&-", ">/dev/full", "2>&- >/dev/full", "| true"])
def test_a_program_is_left_as_it_is(where: str, tmp_path: Path) -> None:
    program = "import sys\nprint(sys.stdout and 1)\nprint(2, flush=True)\n"
    (tmp_path / "program.py").write_text(program)
    by_us = shell(f"devicecore run program.py {where}", tmp_path)
    plain = shell(f"{sys.executable} program.py {where}", tmp_path)
    assert by_us == plain
