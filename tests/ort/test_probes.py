"""Probes: every state that can be had for real here, and the words for it."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from devicecore.liveness import Liveness, hardware
from devicecore.ort import (
    CPU_PROVIDER,
    PROVIDERS,
    SessionSpec,
    ort_package,
    plugin_library,
    probe_provider,
    provider_metadata,
)

onnxruntime = pytest.importorskip("onnxruntime")

ENVIRONMENT = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}


def probe_in_child(expression: str, **environment: str) -> Liveness:
    """Return what `probe_provider` says of a spec in a process with no other environment."""
    code = f"""
import json
from devicecore.ort import SessionSpec, probe_provider
print(json.dumps(probe_provider({expression}).to_json()))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    return Liveness.from_json(json.loads(run.stdout))


def webgpu() -> str:
    plugin = PROVIDERS["WebGpuExecutionProvider"].plugin
    library = plugin_library(plugin) if plugin else None
    if library is None:
        pytest.skip("onnxruntime-ep-webgpu is not installed")
    return f"SessionSpec('WebGpuExecutionProvider', {{}}, 0, {str(library)!r})"


def test_the_cpu_is_live_because_something_ran() -> None:
    found = probe_provider(SessionSpec(CPU_PROVIDER))
    assert found.is_live
    assert found.seconds > 0
    assert found.detail == "2 of 2 nodes of the probe's model"


def test_a_plugin_is_live_because_something_ran_on_it() -> None:
    reason = "no plug-in provider that works on this CPU is installed"
    package = pytest.importorskip("nxrt_ep_cpu", reason=reason)
    found = probe_provider(SessionSpec("cpu_ep", {}, 0, package.get_library_path()))
    assert found.is_live


def test_a_plugin_without_a_device_is_absent() -> None:
    found = probe_in_child(webgpu())
    if found.is_live:
        pytest.skip("this machine has a WebGPU adapter")
    assert found.state == "absent"
    assert found.evidence == "opened"
    assert found.reason.startswith("registered, but it offers no device for the hardware here")


def test_a_device_without_its_driver_is_broken_and_the_library_named() -> None:
    import ctypes.util

    if ctypes.util.find_library("vulkan"):
        pytest.skip("this machine has a Vulkan loader")
    found = probe_in_child(webgpu(), ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER="1")
    assert found.state == "broken"
    assert found.reason.startswith("libvulkan.so.1 cannot be loaded: Failed to get a WebGPU")
    assert "Couldn't load Vulkan" in found.detail
    assert "libvulkan.so.1" in found.fix


@pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")
def test_a_plugin_with_missing_libraries_is_broken_and_names_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "ROOT", tmp_path / "nothing")  # without a GPU that is the reason
    plugin = PROVIDERS["WebGpuExecutionProvider"].plugin
    library = plugin_library(plugin) if plugin else None
    if library is None:
        pytest.skip("onnxruntime-ep-webgpu is not installed")
    data = library.read_bytes()
    for old, new in [
        (b"\0librt.so.1\0", b"\0libqq.so.1\0"),
        (b"\0libdl.so.2\0", b"\0libzz.so.2\0"),
    ]:
        assert old in data
        data = data.replace(old, new)
    copy = tmp_path / library.name
    copy.write_bytes(data)
    found = probe_provider(SessionSpec("WebGpuExecutionProvider", {}, 0, str(copy)))
    assert (found.state, found.evidence) == ("broken", "metadata")
    assert "libzz.so.2" in found.reason
    assert "libqq.so.1" in found.reason


def test_a_wrong_result_is_a_broken_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # No provider here computes wrongly, so the expectation is bent instead.
    monkeypatch.setattr("devicecore.ort.probe.expected_values", lambda: (1.0,) * 8)
    found = probe_provider(SessionSpec(CPU_PROVIDER))
    assert (found.state, found.evidence) == ("broken", "ran")
    assert found.reason == "it computes wrong results"


@pytest.mark.parametrize(
    ("provider", "state", "words"),
    [
        ("CPUExecutionProvider", "untried", "part of onnxruntime"),
        ("DmlExecutionProvider", "absent", "exists on win32 only"),
        ("MIGraphXExecutionProvider", "missing", "was built without MIGraphXExecutionProvider"),
        ("ROCMExecutionProvider", "missing", "removed after onnxruntime 1.22; use MIGraphX"),
        ("NoSuchExecutionProvider", "missing", "was built without NoSuchExecutionProvider"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the states are those of Linux")
def test_metadata_tells_states_apart(
    provider: str, state: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hardware, "ROOT", tmp_path)  # where nothing tells which hardware is here
    if provider != CPU_PROVIDER and provider in onnxruntime.get_available_providers():
        pytest.skip(f"this onnxruntime has {provider}")
    found = provider_metadata(provider)
    assert (found.state, found.evidence) == (state, "metadata")
    assert words in found.reason


def test_an_installed_plugin_is_untried_and_the_built_in_one_missing() -> None:
    pytest.importorskip("onnxruntime_ep_openvino", reason="no OpenVINO plug-in")
    assert provider_metadata("OpenVINOExecutionProvider").state == "untried"
    assert provider_metadata("OpenVINOExecutionProvider", plugin=True).state == "untried"
    package = ort_package()
    if package and "openvino" not in package.distribution:
        assert provider_metadata("OpenVINOExecutionProvider", plugin=False).state == "missing"


def test_without_the_runtime_everything_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(sys, "path", [])
    found = provider_metadata("OpenVINOExecutionProvider")
    assert (found.state, found.reason) == ("missing", "onnxruntime is not installed")
    assert found.fix == "pip install onnxruntime onnxruntime-ep-openvino"
    assert probe_provider(SessionSpec(CPU_PROVIDER)).state == "missing"


def test_what_an_uninstalled_runtime_leaves_behind_is_broken(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime" / "capi").mkdir(parents=True)
    code = """
from devicecore.ort import provider_metadata
found = provider_metadata("CPUExecutionProvider")
print(found.state, found.fix, sep="|")
"""
    import attr
    import attrs

    import devicecore

    for package in (attr, attrs, devicecore):
        folder = Path(str(package.__file__)).parent
        (tmp_path / folder.name).symlink_to(folder)
    environment = {"PATH": "", "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],  # without site-packages, where the real one is
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "broken|pip install --force-reinstall --no-deps onnxruntime\n"


@pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")
def test_a_provider_of_the_build_with_missing_libraries_is_broken(tmp_path: Path) -> None:
    # A stand-in for onnxruntime-gpu, whose wheel is too large for here; the library is a real one
    # that needs what there is nowhere.
    origin = find_spec("numpy._core._multiarray_umath")
    data = Path(str(origin and origin.origin)).read_bytes()
    for old, new in [(b"libc.so.6\0", b"libq.so.6\0"), (b"libm.so.6\0", b"libz.so.9\0")]:
        assert old in data
        data = data.replace(old, new)
    capi = tmp_path / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (capi.parent / "__init__.py").write_text("raise RuntimeError('imported')", encoding="ascii")
    facts = "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n"
    (capi / "build_and_package_info.py").write_text(facts, encoding="ascii")
    (capi / "libonnxruntime_providers_cuda.so").write_bytes(data)
    code = """
import json
from pathlib import Path
from devicecore.liveness import hardware
from devicecore.ort import provider_metadata
hardware.ROOT = Path("/nowhere")  # nothing tells there which hardware this is
print(json.dumps(provider_metadata("CUDAExecutionProvider").to_json()))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = Liveness.from_json(json.loads(run.stdout))
    assert found.state == "broken"
    assert "libq.so.6" in found.reason
    assert "libz.so.9" in found.reason
    assert found.detail.startswith("onnxruntime-gpu 1.31.1, built for CUDA 13.0")
