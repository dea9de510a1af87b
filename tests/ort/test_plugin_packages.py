"""Plug-ins as packages: what they bring on import, what is missing without them, their memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from devicecore.errors import NotLiveError
from devicecore.ort import CPU_PROVIDER, SessionSpec, empty_value, provider_metadata, register
from devicecore.ort.package import provided_by_import

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("onnxruntime")

RTX = "onnxruntime_ep_nv_tensorrt_rtx"


@pytest.fixture
def rtx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package laid out as the plug-in for TensorRT-RTX is, with a library that is none."""
    folder = tmp_path / RTX
    folder.mkdir()
    (folder / "__init__.py").write_text("LINKED = True\n")
    for name in ("libonnxruntime_providers_nv_tensorrt_rtx.so", "libtensorrt_rtx.so.1.7.1"):
        (folder / name).write_bytes(b"not a library")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, RTX, raising=False)
    return folder / "libonnxruntime_providers_nv_tensorrt_rtx.so"


def test_what_a_package_links_when_imported_is_not_missing(rtx: Path, tmp_path: Path) -> None:
    assert {"libtensorrt_rtx.so", "libtensorrt_rtx.so.1"} < provided_by_import(rtx)
    assert provided_by_import(tmp_path / "liba.so") == set()


def test_such_a_package_is_imported_before_its_library_is_loaded(rtx: Path) -> None:
    assert RTX not in sys.modules
    with pytest.raises(NotLiveError, match=rtx.name):
        register(rtx)
    assert sys.modules.pop(RTX).LINKED


def test_a_missing_plugin_is_named_and_not_the_build() -> None:
    found = provider_metadata("NvTensorRTRTXExecutionProvider", plugin=True)
    if found.state != "missing":
        pytest.skip("the plug-in for TensorRT-RTX is installed")
    assert found.reason == "onnxruntime-ep-nv-tensorrt-rtx-cu13 is not installed"
    assert found.fix == "pip install onnxruntime-ep-nv-tensorrt-rtx-cu13"


def test_a_missing_build_is_brought_by_a_build_and_not_the_plugin() -> None:
    found = provider_metadata("OpenVINOExecutionProvider", plugin=False)
    if found.state != "missing":
        pytest.skip("this is the build with OpenVINO")
    assert found.fix.endswith("&& pip install onnxruntime-openvino")


def test_no_value_is_made_where_the_provider_has_no_memory() -> None:
    with pytest.raises(NotLiveError, match="no memory can be allocated on it"):
        empty_value(SessionSpec(CPU_PROVIDER), (2, 3), "float32")


def test_a_value_lies_in_the_memory_of_a_plugins_device() -> None:
    package = pytest.importorskip("nxrt_ep_cpu", reason="no plug-in that works here is installed")
    spec = SessionSpec("cpu_ep", {}, 0, package.get_library_path())
    value = empty_value(spec, (2, 3), "float32")
    assert (value.shape(), value.data_type()) == ([2, 3], "tensor(float)")
