"""The command line, as a person and as a pipe see it."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from devicecore import __version__
from devicecore.cli import COMMANDS, main

if TYPE_CHECKING:
    from collections.abc import Sequence


def call(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = main(words)
    except SystemExit as stop:  # argparse's own way to end
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(["--help"], capsys)
    assert code == 0
    assert all(name in out for name in COMMANDS)
    for name in COMMANDS:
        code, out, _ = call([name, "--help"], capsys)
        assert code == 0
        assert ("--json" in out) == (name != "run")  # whose words are the program's
        assert f"\n{COMMANDS[name][:30].capitalize()}" in out


class Terminal(StringIO):
    """A fake terminal: it only says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["devices"], "probing the devices ..."),
        (["resolve", "cpu"], "choosing a device ..."),
        (["doctor", "cpu"], "looking at the machine ..."),
    ],
)
def test_what_takes_its_time_says_what_it_does(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(words) == 0
    assert said in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")  # and takes it away again


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["--version"], capsys)[:2] == (0, f"devicecore {__version__}\n")


def test_devices_lists_the_live_and_explains_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(["devices"], capsys)
    assert (code, err) == (0, "")
    live, _, others = out.partition("not live\n")
    assert "CPU:0" in live
    if sys.platform != "darwin":
        assert "MPS" in others
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out


def test_devices_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(["devices", "--json"], capsys)
    data = json.loads(out)
    assert code == 0
    names = [entry["name"] for entry in data["devices"] if entry["device_class"] == "CPU"]
    assert "/job:localhost/replica:0/task:0/device:CPU:0" in names
    assert {entry["device_type"] for entry in data["candidates"]} >= {"CPU", "CUDA", "MPS"}


def test_resolve(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(["resolve", "cpu"], capsys)
    assert code == 0
    assert out.startswith("CPU:0")
    code, out, _ = call(["resolve", "cpu", "--json"], capsys)
    assert json.loads(out)["device"].endswith("/device:CPU:0")


def test_resolve_says_sentences_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, out, _ = call(["resolve", "cpu"], capsys)
    assert out.startswith("Using CPU:0")
    assert out.endswith("\nWhy: cpu was asked for.\n")
    _, out, _ = call(["resolve", "cpu", "--json"], capsys)
    assert json.loads(out)["why"] == "cpu was asked for"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["resolve", "cpu:99"], 1, "no device is called 'cpu:99'"),
        (["resolve", "/nonsense"], 2, "invalid device name"),
        (["resolve", "cpu", "--policy", "require:cuda"], 2, "both name devices"),
        (["resolve", "--policy", "cheapest"], 2, "invalid policy"),
        (["resolve", "--framework", "caffe"], 2, "the framework is 'caffe'"),
        (["doctor", "/device:nobody"], 1, "no device is called 'nobody'"),
        (["doctor", "nobody"], 2, "unknown device type"),
        (["frobnicate"], 2, "invalid choice"),
        ([], 2, "required"),
    ],
)
def test_errors_are_one_line_and_have_their_code(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, err = call(words, capsys)
    assert got == code
    assert out == ""
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "code", "error", "fact"),
    [
        (["resolve", "cpu:99"], 1, "UnknownDeviceError", ("name", "cpu:99")),
        (["resolve", "GPU.1"], 2, "InvalidDeviceNameError", ("suggestion", "GPU:1")),
        (["resolve", "--policy", "cpu"], 2, "UsageError", None),
        (["doctor", "tpu"], 2, "InvalidDeviceNameError", ("text", "tpu")),
        (["doctor", "dml"], 1, "UnknownDeviceError", ("name", "DML")),
        (["doctor", "--model", "/nowhere.onnx"], 1, "ModelError", ("path", "/nowhere.onnx")),
        (["bench", "/nowhere.onnx"], 1, "ModelError", ("path", "/nowhere.onnx")),
    ],
)
def test_an_error_is_data_where_data_is_asked_for(
    words: list[str],
    code: int,
    error: str,
    fact: tuple[str, str] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    got, out, err = call([*words, "--json"], capsys)
    data = json.loads(out)["error"]
    assert (got, data["type"]) == (code, error)
    assert err == f"devicecore: {data['message']}\n"
    assert fact is None or data[fact[0]] == fact[1]


@pytest.mark.skipif("sys.platform == 'darwin'", reason="MPS may be live here")
def test_a_dead_type_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(["resolve", "mps"], capsys)
    assert code == 1
    assert err.startswith("devicecore: MPS is absent")


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(["doctor", "cpu"], capsys)
    assert code == 0
    assert "ThreadPoolDeviceFactory" in out
    assert "taken" in out
    code, out, _ = call(["doctor", "cpu", "--json"], capsys)
    states = {each["origin"]: each["state"] for each in json.loads(out)["candidates"]}
    assert states["devicecore (ThreadPoolDeviceFactory)"] == "live"


def test_a_reader_that_has_seen_enough() -> None:
    """`devicecore devices | head -1` ends without a traceback."""
    program = f"{sys.executable} -m devicecore doctor | head -1"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
