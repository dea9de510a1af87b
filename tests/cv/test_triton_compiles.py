"""Triton's compiler takes every kernel, for GPUs of NVIDIA and AMD that are not here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("triton")

from devicecore.cv import catalog

FOLDERS = sorted({row.folder for row in catalog.TRITON.values()})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cuda", "hip"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_kernel(kind: str, folder: str, tmp_path: Path) -> None:
    names = [name for name, row in catalog.TRITON.items() if row.folder == folder]
    found = [os.environ.get("PYTHONPATH"), str(Path.cwd())]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, found)),
        "TRITON_CACHE_DIR": str(tmp_path),
    }
    child = subprocess.run(
        [sys.executable, "-m", "tests.cv.compiling", kind, *names],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    counts = dict(line.split() for line in child.stdout.splitlines())
    assert counts.keys() == set(names)
    assert "0" not in counts.values()
