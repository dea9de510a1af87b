"""Every public function that takes a device, a type or a framework reads the same words.

The GPUs are fakes; what each word means is in `test_spellings`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

import pytest

import devicecore
from devicecore import (
    DeviceMgr,
    DeviceName,
    DeviceOptions,
    DeviceSet,
    device_scope,
    get_providers,
    is_gpu_available,
    resolve,
    resolve_device,
    set_default_device,
    tensors_to_device,
)
from devicecore import runtime as runtime_module
from devicecore.cli import main
from devicecore.errors import DeviceCoreError
from devicecore.onnx import OnnxModel, session_options
from devicecore.ort.tiny_model import tiny_model
from devicecore.runtime import Runtime, default_runtime
from devicecore.testing import OnnxBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture(autouse=True)
def _the_fakes_only(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(runtime_module, "_default", runtime)
    yield
    set_default_device(None)


def _entered(device: Any, **options: Any) -> str:
    with device_scope(device, **options) as found:
        return found.name


def _as_default(device: Any) -> str:
    set_default_device(device)
    return devicecore.get_default_device().name


def _moved(device: Any) -> str:
    found: Any = tensors_to_device([], device)
    assert found == []
    return default_runtime().device(device).name


def _refused(ask: Callable[[Any], object]) -> Callable[[Any], str]:
    """Return what asks for a device, and returns the name of the one that has no provider."""

    def asked(device: Any) -> str:
        try:
            ask(device)
        except DeviceCoreError as error:
            if "no provider for it" in str(error):
                return str(error).split()[0]
            raise
        raise AssertionError(device)

    return asked


def _managed() -> DeviceMgr:
    return DeviceMgr.create(registry=default_runtime().registry)


def _removed(device: Any) -> str:
    manager = _managed()
    before = {each.name for each in manager}
    manager.remove_devices([device])
    (gone,) = before - {each.name for each in manager}
    return gone


def _filtered(device: Any) -> str:
    options = DeviceOptions(filters=(device,))
    made = DeviceMgr.create(options, registry=default_runtime().registry)
    (name,) = {each.name for each in made if each.device_type != "CPU"}
    return name


def _contained(device: Any) -> str:
    manager = _managed()
    if device not in manager:
        return manager.lookup_device(device).name  # which says why
    return default_runtime().device(device).name


def _policy(device: Any) -> str:
    return _managed().best_device(policy=f"Prefer: {device}, cpu").name


def _backend(device: Any) -> str:
    assert not OnnxBackend.supports_device(device)  # the fakes have no provider
    return _refused(lambda each: OnnxBackend.prepare(tiny_model(), each))(device)


DEVICES: dict[str, Callable[[Any], str]] = {
    "resolve": lambda device: resolve(device).device.name,
    "get_providers": _refused(lambda device: get_providers(device, strict=True)),
    "session_options": _refused(session_options),
    "OnnxModel.session": _refused(lambda device: OnnxModel(tiny_model()).session(device)),
    "OnnxBackend.prepare": _backend,
    "device_scope": _entered,
    "device_scope, fallback": lambda device: _entered("xpu", fallback=device),
    "set_default_device": _as_default,
    "tensors_to_device": _moved,
    "Runtime.device": lambda device: default_runtime().device(device).name,
    "DeviceMgr.lookup_device": lambda device: _managed().lookup_device(device).name,
    "DeviceMgr.find_devices": lambda device: _managed().find_devices(device)[0].name,
    "DeviceMgr.remove_devices": _removed,
    "in DeviceMgr": _contained,
    "DeviceOptions.filters": _filtered,
    "DeviceSet.find_matching_devices": lambda device: (
        DeviceSet(_managed()).find_matching_devices(device)[0].name
    ),
}
TEXTS: dict[str, Callable[[Any], str]] = {
    "DeviceMgr.best_device, policy": _policy,
    "resolve, policy": lambda device: resolve(policy=f"REQUIRE:{device}").device.name,
}


def _torch_device() -> Any:
    return pytest.importorskip("torch").device("cuda", 1)


@pytest.mark.parametrize("entry", [*DEVICES, *TEXTS])
@pytest.mark.parametrize(
    "given",
    ["cuda:1", "CUDA:1", "Cuda:1", "CUDAExecutionProvider:1", "/device:cuda:1", "/gpu:1", "gpu:1"],
)
def test_texts(entry: str, given: str) -> None:
    if "gpu" in given and entry in {"DeviceSet.find_matching_devices", "DeviceOptions.filters"}:
        pytest.skip("a class is not the type of a device there, as in TensorFlow")
    assert {**DEVICES, **TEXTS}[entry](given).endswith("/device:CUDA:1")


@pytest.mark.parametrize("entry", [*DEVICES, *TEXTS])
@pytest.mark.parametrize("given", ["acme:0", "ACME:0", "Acme"])
def test_types_of_plug_ins(entry: str, given: str) -> None:
    assert {**DEVICES, **TEXTS}[entry](given).endswith("/device:Acme:0")


@pytest.mark.parametrize("entry", DEVICES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: DeviceName.parse("cuda:1"),
        _torch_device,
        lambda: _jax_device("gpu", 1),
        lambda: _of("tensorflow", "LogicalDevice", name="/device:CUDA:1"),
        lambda: _of("paddle.base.libpaddle", "CUDAPlace", text="Place(gpu:1)"),
        lambda: _of("cupy.cuda.device", "Device", id=1),
    ],
    ids=["DeviceName", "torch", "jax", "tensorflow", "paddle", "cupy"],
)
def test_objects(entry: str, make: Callable[[], Any]) -> None:
    """Fakes of the frameworks' objects, but for torch's."""
    assert DEVICES[entry](make()).endswith("/device:CUDA:1")


def _of(module: str, kind: str, text: str = "", **attributes: Any) -> Any:
    made: Any = type(kind, (), {"__module__": module, "__str__": lambda _: text, **attributes})
    return made()


def _jax_device(platform: str, index: int) -> Any:
    client = _of("jaxlib.xla_client", "Client", platform_version="cuda 12080")
    device = _of(
        "jaxlib.xla_client", "Device", platform=platform, id=index, process_index=0, client=client
    )
    type(client).process_index = lambda _: 0
    type(client).local_devices = lambda _: [None] * index + [device]
    return device


ANY_NUMBER = {
    "DeviceMgr.find_devices",
    "DeviceOptions.filters",
    "DeviceSet.find_matching_devices",
    "DeviceMgr.best_device, policy",
}
NEAR = [("NVIDIA", "CUDA"), ("nvidia:1", "CUDA"), ("dml", "DirectML"), ("cudaa", "CUDA")]


@pytest.mark.parametrize("entry", [*DEVICES, *TEXTS])
@pytest.mark.parametrize(("given", "near"), NEAR)
def test_what_is_near(entry: str, given: str, near: str) -> None:
    if given == "dml" and entry in ANY_NUMBER:
        pytest.skip("there is no such device, which is an answer there")
    with pytest.raises(DeviceCoreError) as caught:
        {**DEVICES, **TEXTS}[entry](given)
    assert near in str(caught.value)


@pytest.mark.parametrize("entry", DEVICES)
def test_what_is_no_device(entry: str) -> None:
    given: Any
    for given in (1.5, True, [], {"a": 1}, b"cuda"):
        with pytest.raises(
            (DeviceCoreError, TypeError), match=r"invalid device|is a str|is a text|called|must be"
        ):
            DEVICES[entry](given)


FRAMEWORKS: dict[str, Callable[[str], object]] = {
    "resolve": lambda word: resolve(framework=word),
    "resolve_device": lambda word: resolve_device(True, word),
    "is_gpu_available": is_gpu_available,
    "DeviceOptions": lambda word: DeviceOptions(frameworks=(word,)).frameworks,
    "FactoryRegistry.get_factory": lambda word: default_runtime().registry.get_factory("cpu", word),
    "DeviceMgr.lookup_device": lambda word: _managed().lookup_device("gpu", word),
    "DeviceMgr.find_devices": lambda word: _managed().find_devices("gpu", word)[0],
    "DeviceMgr.best_device": lambda word: _managed().best_device(framework=word),
    "Runtime.device": lambda word: default_runtime().device("gpu", word),
    "Kernel": lambda word: devicecore.Kernel("x.y", print, framework=word).framework,
    "device_scope": lambda word: (
        _entered("cpu", frameworks=word) if "nx" not in word.casefold() else 1
    ),
}


@pytest.mark.parametrize("entry", FRAMEWORKS)
@pytest.mark.parametrize("word", ["torch", "Torch", "PyTorch", "ONNX", "OnnxRuntime"])
def test_frameworks(entry: str, word: str) -> None:
    assert FRAMEWORKS[entry](word)


@pytest.mark.parametrize("entry", FRAMEWORKS)
def test_misspelt_frameworks(entry: str) -> None:
    with pytest.raises(ValueError, match="did you mean 'torch'"):
        FRAMEWORKS[entry]("pytroch")


@pytest.mark.parametrize("command", ["resolve WORD", "doctor WORD", "demo --device WORD"])
@pytest.mark.parametrize(("given", "near"), NEAR)
def test_commands(command: str, given: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.replace("WORD", given).split()) != 0
    assert near in capsys.readouterr().err


WORDS = {"device", "devices", "device_type", "type_or_class", "framework", "frameworks", "backend"}
WORDS |= {"fallback", "pattern", "request"}
# They take objects of ours, or pass on to those above; `test_spellings` has those of types.
OTHERS = {
    "Device",
    "Device.link_memory",
    "DeviceAttributes",
    "DeviceFactory.probe",
    "DeviceFactory.runs_here",
    "DeviceMgr",
    "DeviceMgr.add_devices",
    "DeviceMgr.devices_by_type",
    "DeviceMgr.num_device_type",
    "DeviceMgr.rank",
    "DeviceMgr.siblings",
    "DeviceName",
    "DeviceName.matches",
    "DeviceOptions.chosen",
    "DeviceSet",
    "DeviceSet.add_device",
    "FactoryRegistry.device_priority",
    "FactoryRegistry.probe",
    "FactoryRegistry.factories",
    "FactoryRegistry.liveness_of",
    "FactoryRegistry.new_device",
    "FactoryRegistry.register_class",
    "Kernel.refusal",
    "Kernel.why_not_on",
    "Liveness",
    "Liveness.of",
    "OnnxModel.why_not_on",
    "PhysicalDevice",
    "PlaceEnv",
    "PlaceEnv.at",
    "PlaceEnv.placement_of",
    "Registrar",
    "Registration",
    "Resolution",
    "as_tensor",
    "device_scope.at",
    "device_scope.placement_of",
    "get_kernel",
    "kernel",
}


def test_no_public_function_was_forgotten() -> None:
    tested = {name.partition(",")[0] for name in (*DEVICES, *TEXTS, *FRAMEWORKS)}
    assert _takers("devicecore", "devicecore.onnx") - tested == OTHERS


def _takers(*modules: str) -> set[str]:
    found = set()
    for module in map(importlib.import_module, modules):
        for name in module.__all__:
            value = getattr(module, name)
            parts = {name: value}
            if inspect.isclass(value):
                parts |= {
                    f"{name}.{part}": each
                    for part, each in vars(value).items()
                    if not part.startswith("_") and callable(each)
                }
            found |= {part for part, each in parts.items() if WORDS & set(_parameters(each))}
    return found


def _parameters(value: Any) -> list[str]:
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
