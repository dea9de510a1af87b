"""`devicecore doctor`: sessions that it is asked about, and the bundle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devicecore.cli import main
from devicecore.cli.table import wrapped_fix
from devicecore.doctor import Finding

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
    assert (code, err) == (1, "")
    found = {each["name"]: each for each in json.loads(out)["findings"]}
    assert set(found["reduced-precision"]) == {"name", "problem", "evidence", "fix", "is_advice"}
    assert "trt_fp16_enable" in found["wrong-ep-device-or-option-dialect"]["evidence"]


def test_findings_a_summary_and_then_candidates(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(["--provider", "CUDAExecutionProvider"], capsys)
    assert code == 1
    lines = out.splitlines()
    # What has no blank, such as a path, is not broken.
    assert all(len(line) <= 80 for line in lines if len(max(line.split(), key=len)) < 60)
    summaries = [number for number, line in enumerate(lines) if line.startswith("summary  ")]
    findings = [number for number, line in enumerate(lines) if line.startswith("finding  ")]
    candidates = [number for number, line in enumerate(lines) if line.startswith("  known ")]
    assert len(summaries) == 1
    assert findings[0] == 0
    assert max(findings) < summaries[0] < min(candidates)
    assert f" {len(findings)} finding" in lines[summaries[0]]
    start = lines.index("finding  reduced-precision")
    block = lines[start : start + 8]
    assert '  fix      providers=[("CUDAExecutionProvider", {"use_tf32": "0"})]' in block


@pytest.mark.parametrize(("advice", "wrong"), [(1, 0), (0, 1), (2, 1), (0, 0)])
def test_advice_is_no_finding(
    advice: int, wrong: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found is a fake: it is not the same on every machine."""
    found = [
        Finding("a", "b", "c", "d", is_advice=each) for each in [True] * advice + [False] * wrong
    ]
    monkeypatch.setattr("devicecore.cli.doctor.diagnose", lambda _: found)
    code, out, _ = call([], capsys)
    assert code == bool(wrong)
    assert call(["--json"], capsys)[0] == code
    lines = out.splitlines()
    assert [lines.count("advice   a"), lines.count("finding  a")] == [advice, wrong]
    assert ("no findings" in out) == (not wrong)


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
    data = json.loads(out)
    assert code == any(not each["is_advice"] for each in data["findings"])
    text = path.read_text(encoding="utf-8")
    assert all(f"  {package}\n" in text for package in data["packages"])
    assert data["packages"]
    for key in ("devicecore", "python", "system", "machine"):
        assert data[key] in text
    for candidate in data["candidates"]:
        assert f"{candidate['device_type']}  {candidate['state']}" in text
    for place in (sys.prefix, str(Path.home()) + "/", str(Path.cwd())):
        assert place not in text
    assert text.startswith("devicecore ")
    assert "onnxruntime" in text


PACKAGES = " ".join(f"nvidia-package-{number}" for number in range(9))


@pytest.mark.skipif("sys.platform == 'win32'", reason="its shells continue no line this way")
@pytest.mark.parametrize(
    ("fix", "commands"),
    [
        (f"pip install {PACKAGES}", 1),
        (f"pip uninstall -y {PACKAGES} && pip install onnxruntime-gpu", 1),
        (f"A=1 python -m pip install {PACKAGES}; pip check", 2),
        (f"pip install {PACKAGES}; install the NVIDIA driver, for libcuda.so.1", 1),
    ],
)
def test_a_command_that_is_wrapped_can_be_copied(fix: str, commands: int) -> None:
    lines = wrapped_fix(fix, 11)
    assert max(map(len, lines)) <= 80 - 11
    indented = "\n".join(" " * 11 + line for line in lines)
    said = 'pip() { echo pip "$@"; }; python() { echo python "$@"; }\n'
    ran = subprocess.run(
        ["bash", "-c", said + indented], check=False, capture_output=True, text=True
    )
    asked = subprocess.run(["bash", "-c", said + fix], check=False, capture_output=True, text=True)
    assert ran.stdout == asked.stdout
    assert ran.stdout.count("\n") >= commands


def test_what_stands_in_quotes_is_not_broken() -> None:
    text = "this is one text; " * 4
    lines = wrapped_fix(f'options = {{"key": "{text}", "other": \'a; b\'}}; the rest', 11)
    assert any(f'"{text}"' in line for line in lines)
    assert lines[-1] == "the rest"


def test_one_type_is_not_said_to_be_without_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "finding" not in out
    assert "`devicecore doctor` without it looks for what is wrong" in out
    assert main(["doctor", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] is None
