"""``devicecore demo`` as a person calls it: in a pipe, on a terminal, with good and bad files."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from devicecore.cli import demo, main
from devicecore.cli.progress import progress
from devicecore.device import Device
from devicecore.errors import NotLiveError
from devicecore.ledger import default_ledger
from devicecore.optional import package_dir

if package_dir("rapidocr") is None:
    pytest.skip("rapidocr, whose wheel has the models, is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command on the CPU here, and returns exit code, stdout and stderr."""

    def call(*words: str | Path) -> tuple[int, str, str]:
        code = main(["demo", "--device", "cpu", "--json", *map(str, words)])
        return (code, *capsys.readouterr())

    return call


def spawned(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'factories'}"}
    command = [sys.executable, "-m", "devicecore", "demo", *map(str, words)]
    return subprocess.run(command, text=True, env=environment, check=False, **options)


def test_in_a_pipe_it_prints_devices_lines_times_and_files(tmp_path: Path) -> None:
    done = spawned("--out", tmp_path / "out", capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("live\n")
    assert "CPU:0" in done.stdout
    assert "page.png, read on " in done.stdout
    assert "  unambiguously as either object or background. Here,\n" in done.stdout
    assert "7 lines, mean score 0.9" in done.stdout
    assert "seconds:  image 0." in done.stdout
    assert f"written: {tmp_path / 'out' / 'page.png'}\n" in done.stdout
    assert not {"\r", "\x1b"} & set(done.stdout)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("written:")]
    assert max(map(len, lines)) <= 80


def test_it_writes_the_page_with_boxes_and_its_lines(
    run: Run, tmp_path: Path, samples: Path
) -> None:
    code, out, err = run("--out", tmp_path)
    assert (code, err) == (0, "")
    report = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert report == json.loads(out)
    assert list(report) == ["device", "lines", "seconds"]
    assert report["device"].endswith("/device:CPU:0")
    assert len(report["lines"]) == 7
    assert np.mean([line["score"] for line in report["lines"]]) >= 0.90
    assert all(list(line) == ["text", "score", "box"] for line in report["lines"])
    assert np.shape([line["box"] for line in report["lines"]]) == (7, 4, 2)
    stages = ["image", "load", "prepare", "detect", "cut", "recognise", "total"]
    assert list(report["seconds"]) == stages
    assert report["seconds"]["total"] == pytest.approx(
        sum(report["seconds"][stage] for stage in stages[:-1]), abs=0.001
    )
    with Image.open(samples / "page.png") as page, Image.open(tmp_path / "page.png") as marked:
        before, after = np.asarray(page.convert("RGB")), np.asarray(marked)
    changed = (before != after).any(axis=2)
    assert 0 < changed.mean() < 0.2
    assert (after[changed] == (255, 0, 0)).all()


@pytest.mark.parametrize("kind", ["photo", "one pixel", "grey with alpha", "16 bits"])
def test_files_of_every_kind_are_read(kind: str, run: Run, tmp_path: Path, samples: Path) -> None:
    file = tmp_path / "page.png"
    grey = np.asarray(Image.open(samples / "page.png").convert("L"))
    if kind == "photo":
        file = samples / "coffee.png"
    elif kind == "one pixel":
        Image.new("L", (1, 1)).save(file)
    elif kind == "16 bits":
        Image.fromarray(grey.astype(np.uint16) * 257).save(file)
    else:
        Image.fromarray(np.dstack([grey, np.full_like(grey, 255)])).save(file)
    code, out, err = run("--image", file, "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["lines"]) == (0 if kind in {"photo", "one pixel"} else 7)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", "there is no such file"),
        ("folder", "it is a folder"),
        ("truncated", "it is damaged"),
        ("text", "it is no image"),
    ],
)
def test_a_bad_file_is_one_line_and_a_failure(
    kind: str, words: str, run: Run, tmp_path: Path, samples: Path
) -> None:
    file = tmp_path / "bad.png"
    if kind == "folder":
        file.mkdir()
    elif kind == "truncated":
        file.write_bytes((samples / "page.png").read_bytes()[:20_000])
    elif kind == "text":
        file.write_text("This is a text.\n" * 100, encoding="ascii")
    code, out, err = run("--image", file, "--out", tmp_path / "out")
    assert code == 1
    assert words in json.loads(out)["error"]["reason"]
    assert err.count("\n") == 1
    assert words in err
    assert not (tmp_path / "out").exists()


def test_a_device_that_is_none_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--json", "--device", "no:such:thing", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_the_models_the_extra_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wheel in ("rapidocr", "rapidocr_onnxruntime"):
        monkeypatch.setitem(sys.modules, wheel, None)
    code, _, err = run("--out", tmp_path)
    assert code == 1
    assert "pip install 'devicecore[demo]'" in err


@pytest.mark.parametrize("package", ["cv2", "PIL", "pyclipper", "onnxruntime"])
def test_without_a_package_the_extra_is_named(
    package: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = run("--out", tmp_path)
    assert (code, *json.loads(out)) == (1, "error")
    assert err.endswith("pip install 'devicecore[demo]'\n")
    assert package in err


def test_a_device_of_our_choice_that_fails_is_replaced_and_recorded() -> None:
    npu = Device("/device:NPU:0", device_class="NPU")  # it has no provider, so every model fails
    before = default_ledger().total
    device, page = demo._read(np.full((40, 40, 3), 255, np.uint8), npu, may_move=True)
    assert device.device_type == "CPU"
    assert page.lines == ()
    assert default_ledger().total == before + 1


def test_a_device_that_was_asked_for_is_not_replaced() -> None:
    npu = Device("/device:NPU:0", device_class="NPU")
    with pytest.raises(NotLiveError):
        demo._read(np.full((40, 40, 3), 255, np.uint8), npu, may_move=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals")
def test_a_terminal_shows_progress_and_keeps_none_of_it(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    done = spawned(
        *("--device", "cpu", "--json", "--out", tmp_path), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 0
    json.loads(done.stdout)
    assert "loading the models ..." in shown
    assert "read 7 of 7 lines ..." in shown
    assert shown.endswith("\r\x1b[K")


def test_progress_in_a_pipe_is_silent() -> None:
    stream = io.StringIO()
    with progress(stream) as show:
        show("working")
    assert stream.getvalue() == ""
