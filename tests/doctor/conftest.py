"""Diagnoses made in a process of their own, and builds of ONNX Runtime made of real libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAM = """\
import json, sys
from pathlib import Path
from attrs import asdict
from devicecore.liveness import hardware
hardware.ROOT = Path(sys.argv[2])
from devicecore.doctor import Case, Session, diagnose, tried
asked = tuple(tried(Session(*arguments)) for arguments in json.loads(sys.argv[1]))
found = [asdict(finding) for finding in diagnose(Case(sessions=asked))]
imported = sorted({"cv2", "numpy", "onnxruntime", "torch"} & sys.modules.keys())
print(json.dumps({"findings": found, "imported": imported}))
"""

# Where there are no files of a system: which hardware this machine has is not known there.
SAYS_NOTHING = Path("/nowhere")


@pytest.fixture
def findings(our_packages: Path) -> Callable[..., list[dict[str, str]]]:
    """Return a function that makes all diagnoses in a process with other folders on its path."""
    return partial(_findings, our_packages)


def _findings(
    packages: Path,
    *folders: Path,
    sessions: Any = (),
    python: Path | str = sys.executable,
    environment: Mapping[str, str] | None = None,
    system: Path = SAYS_NOTHING,
) -> list[dict[str, str]]:
    path = os.pathsep.join(map(str, [*folders, packages]))
    told = subprocess.run(
        [python, "-c", PROGRAM, json.dumps(list(sessions)), str(system)],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    answer: dict[str, Any] = json.loads(told.stdout)
    assert answer["imported"] == []
    found: list[dict[str, str]] = answer["findings"]
    return found


@pytest.fixture
def gpu_build(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a folder with a build of ONNX Runtime for CUDA 13 in it.

    The build is a fake, whose libraries are real ones that need what they are told to need.
    """

    def make(**needs: list[str]) -> Path:
        folder = tmp_path / "build"
        capi = folder / "onnxruntime" / "capi"
        capi.mkdir(parents=True)
        (folder / "onnxruntime" / "__init__.py").touch()
        facts = "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n"
        (capi / "build_and_package_info.py").write_text(facts)
        for name, libraries in needs.items():
            file = capi / f"libonnxruntime_providers_{name}.so"
            file.write_bytes(needing(libraries))
        return folder

    return make


@pytest.fixture
def without_a_gpu(tmp_path: Path) -> Path:
    """Return the files of a system whose bus has no accelerator; they are fakes."""
    bridge = tmp_path / "system/sys/bus/pci/devices/0000:00:00.0"
    bridge.mkdir(parents=True)
    (bridge / "vendor").write_text("0x8086")
    (bridge / "class").write_text("0x060000")
    (tmp_path / "system/proc").mkdir()
    (tmp_path / "system/proc/cpuinfo").write_text("vendor_id : AuthenticAMD\n")
    return tmp_path / "system"


def needing(libraries: list[str]) -> bytes:
    """Return a real library, with *libraries* written over the names of those that it needs."""
    spec = find_spec("numpy._core._multiarray_umath")
    file = Path(str(spec and spec.origin))
    from devicecore.ort.elf import needs_of

    data = file.read_bytes()
    old = sorted(needs_of(file).libraries, key=len, reverse=True)
    for new, name in zip(sorted(libraries, key=len, reverse=True), old, strict=False):
        assert len(new) <= len(name)
        data = data.replace(name.encode() + b"\0", new.encode().ljust(len(name) + 1, b"\0"))
    return data


@pytest.fixture
def told(our_packages: Path) -> Callable[..., Any]:
    """Return a function that runs Python with other folders on its path, and gives its JSON."""

    def run(
        code: str,
        *folders: Path,
        python: Path | str = sys.executable,
        cwd: Path | None = None,
        **variables: str,
    ) -> Any:
        path = os.pathsep.join(map(str, [*folders, our_packages]))
        done = subprocess.run(
            [python, "-c", code],
            env={**os.environ, "PYTHONPATH": path, **variables},
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def record(folder: Path, name: str, version: str, module: str) -> None:
    """Write what pip would, had it installed *name* into *folder*."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "top_level.txt").write_text(f"{module}\n")
