"""`get_providers` for programs that keep compiled engines; the providers are not here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, default_ledger, get_providers
from devicecore.errors import EngineCacheError, ModelError
from devicecore.onnx import session_options
from devicecore.ort import SessionSpec
from devicecore.ort.tiny_model import tiny_model
from devicecore.resolution import seed_functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.ort.provider_options import Preferences

FOLDERS = {
    "TensorrtExecutionProvider": ("trt_engine_cache_path", "trt_timing_cache_path"),
    "CoreMLExecutionProvider": ("ModelCacheDirectory",),
    "OpenVINOExecutionProvider": ("cache_dir",),
}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path / "cache"))


def device_of(provider: str, **options: str) -> Device:
    spec = SessionSpec(provider, options)
    return Device("/device:NPU:0", device_class="NPU", session=spec, frameworks=("onnx",))


def options_of(device: Device, model: Any = None) -> dict[str, str]:
    first, *_ = get_providers(device, model=model, strict=True)
    return dict(first[1]) if isinstance(first, tuple) else {}


@pytest.fixture(params=[bytes, str, Path])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> bytes | str | Path:
    file = tmp_path / "m.onnx"
    file.write_bytes(tiny_model())
    kinds: dict[type, Callable[[], bytes | str | Path]] = {
        bytes: tiny_model,
        str: lambda: str(file),
        Path: lambda: file,
    }
    return kinds[request.param]()


@pytest.mark.parametrize("provider", FOLDERS)
def test_engines_of_a_model_are_kept_in_a_folder_of_its_own(
    provider: str, model: bytes | str | Path
) -> None:
    device = device_of(provider)
    assert not set(FOLDERS[provider]) & options_of(device).keys()
    options = options_of(device, model)
    (folder,) = {options[name] for name in FOLDERS[provider]}
    assert Path(folder).is_absolute()
    assert Path(folder).is_dir()
    (Path(folder) / "engine").write_bytes(b"built")
    assert options_of(device, model) == options  # the next start finds it
    assert (Path(folder) / "engine").exists()
    other = options_of(device, tiny_model() + b"\x72\x00")  # an empty training_info
    assert other[FOLDERS[provider][0]] != folder


def test_tensorrt_is_told_to_use_both_caches() -> None:
    options = options_of(device_of("TensorrtExecutionProvider"), tiny_model())
    assert options["trt_engine_cache_enable"] == options["trt_timing_cache_enable"] == "1"


def test_tensorrt_falls_to_cuda_before_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_functions, "provider_library", lambda _: Path("libcuda"))
    found = get_providers(device_of("TensorrtExecutionProvider", device_id="1"), strict=True)
    names = [each if isinstance(each, str) else each[0] for each in found]
    assert names == ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    assert found[1][1]["device_id"] == "1"  # type: ignore[index]


def test_a_folder_that_the_device_names_is_used(tmp_path: Path) -> None:
    device = device_of("OpenVINOExecutionProvider", cache_dir=str(tmp_path))
    assert options_of(device, tiny_model())["cache_dir"] == str(tmp_path)
    assert not (tmp_path / "cache").exists()


def test_a_provider_without_engines_keeps_none(tmp_path: Path) -> None:
    options_of(device_of("CUDAExecutionProvider"), tiny_model())
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_used_is_in_the_ledger(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path / "file"))
    device = device_of("CoreMLExecutionProvider")
    with pytest.raises(EngineCacheError):
        get_providers(device, model=tiny_model(), strict=True)
    before = default_ledger().total
    first, *_ = get_providers(device, model=tiny_model())
    assert "ModelCacheDirectory" not in first[1]
    assert default_ledger().total == before + 1


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        get_providers(device_of("CoreMLExecutionProvider"), model=tmp_path / "none.onnx")


@pytest.mark.parametrize("provider", [*FOLDERS, "CUDAExecutionProvider"])
def test_session_options_keep_engines_in_the_same_way(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    seen: list[str] = []

    def add(_ort: object, _options: object, _spec: object, wanted: Preferences) -> None:
        seen.append(wanted.engines)

    module = import_module("devicecore.onnx.session_options")  # the function has its name
    monkeypatch.setattr(module, "add_provider", add)
    device = device_of(provider)
    session_options(device)
    session_options(device, model=tiny_model())
    session_options(device, model=tiny_model())
    session_options(device, model=tiny_model(), precision="default")
    without, first, again, other = seen
    assert without == ""
    assert first == again
    if provider in FOLDERS:
        assert Path(first).is_dir()
        assert other not in {"", first}  # engines of one precision are not for another
    else:
        assert first == other == ""
