"""`devicecore doctor`: sessions that it is asked about, and the bundle."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devicecore.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence

pytest.importorskip("onnxruntime")


def call(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["doctor", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_session_is_asked_about_by_its_provider(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--provider", "CUDAExecutionProvider", "--option", "trt_fp16_enable=1", "--json"]
    code, out, err = call(words, capsys)
    assert (code, err) == (0, "")
    found = {each["name"]: each for each in json.loads(out)["findings"]}
    assert set(found["reduced-precision"]) == {"name", "problem", "evidence", "fix"}
    assert "trt_fp16_enable" in found["wrong-ep-device-or-option-dialect"]["evidence"]


def test_a_fix_stands_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(["--provider", "CUDAExecutionProvider"], capsys)
    assert code == 0
    lines = out.splitlines()
    start = lines.index("finding  reduced-precision")
    block = lines[start : start + 8]
    assert '  fix      providers=[("CUDAExecutionProvider", {"use_tf32": "0"})]' in block


def test_a_model_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.onnx"
    page.write_text("<html>")
    words = ["--model", str(page), "--provider", "CUDAExecutionProvider"]
    code, out, err = call(words, capsys)
    assert (code, out) == (1, "")
    assert "it is a web page" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--option", "a=1"], "name it with --provider"),
        (["--library", "a.so"], "name it with --provider"),
        (["--provider", "CUDAExecutionProvider", "--option", "a"], "no key and its value"),
        (["--provider", "CUDAExecutionProvider", "--option", "=1"], "no key and its value"),
        (["cpu", "--provider", "CUDAExecutionProvider"], "two questions"),
        (["cpu", "--bundle", "{file}/below.txt"], "cannot be written"),
    ],
)
def test_calls_that_are_wrong(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    code, out, err = call([word.format(file=tmp_path / "file") for word in words], capsys)
    assert (code, out) == (2, "")
    assert said in err


def test_the_bundle_holds_the_report_and_no_path_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle.txt"
    code, out, _ = call(["--bundle", str(path), "--json"], capsys)
    assert code == 0
    text = path.read_text(encoding="utf-8")
    for candidate in json.loads(out)["candidates"]:
        assert f"{candidate['device_type']}  {candidate['state']}" in text
    for place in (sys.prefix, str(Path.home()) + "/", str(Path.cwd())):
        assert place not in text
    assert text.startswith("devicecore ")
    assert "onnxruntime" in text
