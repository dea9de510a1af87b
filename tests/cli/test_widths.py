"""What a person reads is as wide as the terminal, and 80 columns in a pipe."""

from __future__ import annotations

import io
import os
import struct
import sys
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.cli import listing, main
from devicecore.cli.resolve import _print_sentences
from devicecore.cli.table import print_table, width_of, wrapped_label
from devicecore.device_factory import Candidate, Registration
from devicecore.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminals")

FIX = "pip uninstall -y onnxruntime onnxruntime-openvino && pip install onnxruntime-gpu"
LONG = "libonnxruntime_providers_cuda.so cannot be loaded without libcublasLt.so.13"
WIDTHS = [30, 50, 80, 132]


@pytest.fixture
def terminal() -> Iterator[Any]:
    """Return a function that makes a real terminal of so many columns: what to write and read."""
    import pty
    from fcntl import ioctl
    from termios import TIOCSWINSZ

    opened: list[Any] = []

    def make(columns: int) -> tuple[Any, int]:
        ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        opened.extend([os.fdopen(theirs, "w"), os.fdopen(ours, "rb", buffering=0)])
        return opened[-2], ours

    yield make
    for file in opened:
        file.close()


def shown(out: Any, ours: int) -> list[str]:
    print("end", file=out, flush=True)
    text = b""
    while not text.endswith(b"end\r\n"):
        text += os.read(ours, 1 << 16)
    return text.decode().replace("\r\n", "\n").splitlines()[:-1]


@pytest.mark.parametrize(("columns", "width"), [(0, 80), (30, 30), (132, 132)])
def test_the_width_is_the_terminals(terminal: Any, columns: int, width: int) -> None:
    assert width_of(terminal(columns)[0]) == width


def test_elsewhere_it_is_80(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    assert width_of(out) == 80
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    assert width_of(out) == 80


def fits(lines: list[str], columns: int) -> bool:
    """Return whether *lines* fit, but for a single word that does not."""
    return all(len(line) <= columns or len(line.split()) <= 3 for line in lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_sentences(terminal: Any, columns: int) -> None:
    out, ours = terminal(columns)
    _print_sentences(f"Using CPU:0 (x).\nNot CUDA: {LONG}. To change that: {FIX}", out)
    lines = shown(out, ours)
    assert fits(lines, columns)
    assert lines[0] == "Using CPU:0 (x)."
    text = " ".join(" ".join(lines).split()).replace("\\ ", "")
    assert text.endswith(f"{LONG}. To change that: {FIX}")
    if columns < 132:
        assert any(line.endswith(" \\") or line.strip() == FIX for line in lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_fixes_of_a_list_can_be_copied(terminal: Any, columns: int) -> None:
    out, ours = terminal(columns)
    rows = [("CUDA", "broken", LONG), ("", "", f"fix: {FIX}")]
    print_table(rows, out, wrap=wrapped_label)
    lines = shown(out, ours)
    assert fits([line.strip() for line in lines], columns)
    (first,) = [number for number, line in enumerate(lines) if "fix: " in line]
    assert all(line.endswith(" \\") for line in lines[first:-1])


def test_the_list_of_devices_does_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = Candidate(  # a fake of a machine with two builds
        Registration("CUDA", "a:B"), 1, Liveness("broken", reason=LONG, fix=FIX), chosen=False
    )
    manager, _ = listing.gather()
    monkeypatch.setattr(listing, "gather", lambda: (manager, [candidate]))
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.strip() for line in lines if line.endswith("\\")] == [
        "fix: pip uninstall -y onnxruntime onnxruntime-openvino && pip \\"
    ]
