"""What programs put on ``sys.path`` besides text takes nothing down."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]  # its types are another package
import pytest

from devicecore.device_factory import FactoryRegistry
from devicecore.device_mgr import DeviceMgr
from devicecore.entry_points import entry_points
from devicecore.liveness.probe_process import ProbeProcess
from devicecore.optional.search_path import search_path
from devicecore.ort.builds import recorded_builds
from devicecore.ort.package import leftover_folder

if TYPE_CHECKING:
    from collections.abc import Callable

PLUGINS = Path(__file__).parents[1] / "plugins"
NO_PLACES = [None, 5, object(), ["x"], 1.5]
AS: dict[str, Callable[[Path], Any]] = {"text": str, "a path": Path, "bytes": os.fsencode}


@pytest.mark.parametrize("form", AS.values(), ids=AS)
def test_paths_and_bytes_count_and_the_rest_does_not(
    form: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PLUGINS / "acme_npu"
    monkeypatch.setattr(sys, "path", [*NO_PLACES, form(place), *sys.path])
    assert search_path()[0] == str(place)
    assert all(isinstance(each, str) for each in search_path())
    found = entry_points("devicecore.factories")
    assert "acme-npu" in {each.distribution.replace("_", "-") for each in found}
    recorded_builds()
    leftover_folder()


def test_devices_are_made_all_the_same(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_EXCLUDE", "TENSORRT,ROCM,MPS,XPU,COREML,OPENVINO,WEBGPU,CUDA")
    monkeypatch.setattr(sys, "path", [*NO_PLACES, Path("/nowhere"), b"/nowhere", *sys.path])
    registry = FactoryRegistry("devicecore.discovery:factories")
    with closing(DeviceMgr.create(registry=registry)) as manager:
        assert "CPU" in {device.device_type for device in manager}


def test_a_job_that_cannot_be_told_leaves_no_child() -> None:
    before = psutil.Process().children()
    with pytest.raises(TypeError):
        ProbeProcess({"path": [Path()]})
    assert psutil.Process().children() == before
