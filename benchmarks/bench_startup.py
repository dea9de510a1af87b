"""Whole processes: what importing and asking costs before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HEAVY = "{'torch', 'numpy', 'onnxruntime', 'cv2', 'ray'} & set(sys.modules)"


def bench_python(process: Callable[..., str]) -> None:
    process("-c", "pass")


def bench_import(process: Callable[..., str]) -> None:
    code = "from devicecore import DeviceMgr, device_scope"
    process("-c", code)


def bench_import_is_light(process: Callable[..., str]) -> None:
    code = f"import sys; from devicecore import DeviceMgr, device_scope; print({HEAVY})"
    assert process("-c", code).strip() == "set()"


def bench_resolve_torch(process: Callable[..., str]) -> None:
    """The first call, which is not timed, leaves the evidence."""
    said = process("-m", "devicecore", "resolve", "--framework", "torch")
    assert said.startswith("CPU:0") or "cuda" in said.lower()


LIST = """\
import sys
from devicecore.cli import main
assert main(["devices"]) == 0
assert not {'torch'} & set(sys.modules)
"""
UNKNOWN = """\
import os, tempfile
os.environ["DEVICECORE_CACHE_DIR"] = tempfile.mkdtemp(dir=".")
"""


def bench_list_devices(process: Callable[..., str]) -> None:
    """Every device, and why each other type has none; the evidence is there."""
    assert "CPU:0" in process("-c", LIST)


def bench_list_devices_first(process: Callable[..., str]) -> None:
    """The same where nothing is known: everything is probed, in processes of its own."""
    assert "CPU:0" in process("-c", UNKNOWN + LIST)


def bench_peer_import_attrs(process: Callable[..., str]) -> None:
    process("-c", "import attrs")


def bench_peer_import_torch(process: Callable[..., str]) -> None:
    pytest.importorskip("torch")
    process("-c", "import torch")


def bench_peer_torch_is_available(process: Callable[..., str]) -> None:
    pytest.importorskip("torch")
    process("-c", "import torch; torch.cuda.is_available()")
