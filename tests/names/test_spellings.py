"""Every entry that takes a name: any case, providers and products; else it says what is near.

The GPUs are fakes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import (
    DeviceMgr,
    DeviceName,
    DeviceOptions,
    FactoryRegistry,
    Kernel,
    cv,
    get_kernel,
    get_providers,
    is_gpu_available,
    resolve,
    resolve_device,
    torch_available,
)
from devicecore.cli import main
from devicecore.device_factory import default_registry
from devicecore.errors import (
    ConfigurationError,
    InvalidDeviceNameError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("cache_dir")


CUDA_WORDS = ["CUDA", "cuda", "Cuda", "CUDAExecutionProvider", "cudaexecutionprovider"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [*((word, "CUDA") for word in CUDA_WORDS), ("acme", "Acme"), ("ACME", "Acme")],
)
def test_a_type_counts_in_any_case_and_by_its_provider(
    factory_registry: FactoryRegistry, word: str, meant: str
) -> None:
    assert factory_registry.get_factory(word).device_type == meant
    assert factory_registry.device_priority(word) == factory_registry.device_priority(meant) > 0
    assert [each.registration.device_type for each in factory_registry.explain(word)] == [meant]
    assert factory_registry.new_device(word, DeviceOptions(), "").device_type == meant
    manager = DeviceMgr.create(registry=factory_registry)
    assert manager.num_device_type(word) == len(manager.devices_by_type(meant)) > 0
    assert manager.lookup_device(word).device_type == meant


def test_a_class_has_the_priority_and_the_candidates_of_its_types(
    factory_registry: FactoryRegistry,
) -> None:
    for word in ("GPU", "gpu"):
        assert factory_registry.device_priority(word) == 200
        assert [each.registration.device_type for each in factory_registry.explain(word)] == [
            "CUDA"
        ]
        with pytest.raises(UnknownDeviceError, match=r"is a class of devices; its types .* CUDA"):
            factory_registry.get_factory(word)
    factory_registry.explain(deep=True)
    assert factory_registry.device_priority("npu") == 100


ASKED: list[Callable[[FactoryRegistry, Any], object]] = [
    lambda registry, word: registry.get_factory(word),
    lambda registry, word: registry.explain(word),
    lambda registry, word: registry.new_device(word, DeviceOptions(), ""),
    lambda registry, word: Runtime(registry).device(word),
    lambda registry, word: resolve(word, runtime=Runtime(registry)),
    lambda registry, word: DeviceMgr.create(registry=registry).lookup_device(word),
]
NEAR = [
    ("NVIDIA", "CUDA"),
    ("nvidia", "CUDA"),
    ("amd", "ROCM"),
    ("Intel", "OPENVINO and XPU"),
    ("apple", "MPS and COREML"),
    ("cudaa", "did you mean 'CUDA"),
    ("acmee", "Acme"),
    ("dml", "DirectML"),
    ("DirectML", "DirectML"),
    ("DmlExecutionProvider", "DirectML"),
    ("QNN", "Qualcomm"),
]


@pytest.mark.parametrize("entry", range(len(ASKED)))
@pytest.mark.parametrize(("word", "near"), NEAR)
def test_a_word_for_no_type_here_says_what_is_near(
    factory_registry: FactoryRegistry, entry: int, word: str, near: str
) -> None:
    if word == "acmee" and entry > 2:
        near = "unknown device type"
    with pytest.raises((InvalidDeviceNameError, UnknownDeviceError)) as caught:
        ASKED[entry](factory_registry, word)
    assert near in str(caught.value)


def test_what_is_no_word_is_one_clear_error(factory_registry: FactoryRegistry) -> None:
    wrongs: list[Any] = [None, 3, [], "", "cuda:1", "a b"]
    for wrong in wrongs:
        with pytest.raises(InvalidDeviceNameError):
            factory_registry.get_factory(wrong)
    assert factory_registry.device_priority("Unheard") == -1
    with pytest.raises(InvalidDeviceNameError, match="CUDA and TENSORRT"):
        factory_registry.device_priority("NVIDIA")


@pytest.mark.parametrize(
    ("text", "device_type", "index"),
    [
        ("DmlExecutionProvider", "DML", None),
        ("QNNExecutionProvider", "QNN", None),
        ("dml:1", "DML", 1),
        ("TensorRTExecutionProvider", "TENSORRT", None),
        ("CUDAExecutionProvider:1", "CUDA", 1),
        ("MIGraphX", "ROCM", None),
    ],
)
def test_providers_are_names(text: str, device_type: str, index: int | None) -> None:
    assert DeviceName.parse(text) == DeviceName(device_type=device_type, index=index)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("CudaExecutionProvidr", "CUDA"),
        ("CUDA_ExecutionProvider", "CUDA"),
        ("AcmeExecutionProvider", ""),
        ("nvidia:1", "CUDA:1"),
    ],
)
def test_other_providers_say_what_is_near(text: str, suggestion: str) -> None:
    with pytest.raises(InvalidDeviceNameError) as caught:
        DeviceName.parse(text)
    assert caught.value.suggestion == suggestion


@pytest.mark.parametrize("word", ["PyTorch", "ORT"])
def test_frameworks_count_in_any_case_and_by_their_packages(runtime: Runtime, word: str) -> None:
    assert resolve_device(True, word, runtime=runtime) == "cuda"
    assert is_gpu_available(word, runtime=runtime)
    assert resolve("cuda", framework=word, runtime=runtime).device.device_type == "CUDA"
    assert runtime.registry.get_factory("cuda", word).device_type == "CUDA"
    assert runtime.manager.best_device(framework=word).device_type == "CUDA"
    assert runtime.manager.lookup_device("gpu", word).device_type == "CUDA"


@pytest.mark.parametrize("word", ["torchh", "onxruntime"])
def test_another_framework_says_what_is_near(runtime: Runtime, word: str) -> None:
    for ask in (
        lambda: resolve_device(False, word, runtime=runtime),
        lambda: is_gpu_available(word, runtime=runtime),
        lambda: resolve(framework=word, runtime=runtime),
    ):
        with pytest.raises(ValueError, match=r"did you mean '(torch|onnx)'"):
            ask()


def test_objects_of_frameworks_are_requests(runtime: Runtime) -> None:
    torch = pytest.importorskip("torch")
    assert resolve(torch.device("cuda:1"), runtime=runtime).device.name.endswith("CUDA:1")
    assert resolve(torch.device("cpu"), runtime=runtime).device.device_type == "CPU"
    index: Any = 1
    assert resolve(index, runtime=runtime).device.device_class == "GPU"
    nothing: Any = SimpleNamespace()
    with pytest.raises(TypeError, match="invalid device"):
        resolve(nothing, runtime=runtime)


@pytest.mark.parametrize(
    ("word", "near"), [("NVIDIA", "CUDA"), ("dml", "DirectML"), ("cudaa", "CUDA")]
)
def test_the_doctor_says_what_is_near(
    capsys: pytest.CaptureFixture[str], word: str, near: str
) -> None:
    assert main(["doctor", word]) != 0
    assert near in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("acme", ["Acme", "CUDA", "CPU"]),
        ("CPUExecutionProvider, Acme", ["CPU", "Acme", "CUDA"]),
        ("gpu", ["CUDA", "Acme", "CPU"]),
        ("NVIDIA", ["CUDA", "Acme", "CPU"]),
        ("dml,Radeon,trt,cpu", ["CPU", "CUDA", "Acme"]),
        (" CudaExecutionProvider ,, npu", ["CUDA", "Acme", "CPU"]),
    ],
)
def test_preferred_types_are_words_too(
    factory_registry: FactoryRegistry, words: str, first: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICECORE_PREFER", words)
    assert list(factory_registry.device_types) == first


@pytest.mark.parametrize("words", ["nvidia", "gpu", "CUDAExecutionProvider", "webgpu, Cuda"])
def test_types_that_are_left_out_are_words_too(
    factory_registry: FactoryRegistry, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICECORE_EXCLUDE", words)
    with pytest.raises(NotLiveError, match="DEVICECORE_EXCLUDE leaves it out"):
        factory_registry.get_factory("cuda")
    assert factory_registry.get_factory("acme").device_type == "Acme"


@pytest.mark.parametrize("variable", ["DEVICECORE_PREFER", "DEVICECORE_EXCLUDE"])
@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("cudaa", "'CUDA'"),
        ("acmee", "'Acme'"),
        ("cuda:1", "'CUDA'"),
        ("x y", "none"),
        ("7", "none"),
    ],
)
def test_a_wrong_word_in_a_variable_is_one_error(
    factory_registry: FactoryRegistry,
    variable: str,
    word: str,
    near: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, f"cuda, {word}")
    runtime = Runtime(factory_registry)
    for ask in (
        lambda: resolve(runtime=runtime),
        lambda: resolve_device(True, runtime=runtime),
        lambda: is_gpu_available(runtime=runtime),
        lambda: get_providers(runtime=runtime),
        lambda: torch_available(runtime=runtime),
        lambda: DeviceMgr.create(registry=factory_registry),
        factory_registry.explain,
    ):
        with pytest.raises(ConfigurationError, match=variable) as caught:
            ask()
        assert near in str(caught.value)


def test_the_cpu_is_never_left_out(
    factory_registry: FactoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICECORE_EXCLUDE", "CPUExecutionProvider")
    with pytest.raises(ConfigurationError, match="but the CPU"):
        factory_registry.get_factory("cpu")


@pytest.mark.parametrize("key", ["cuda", "Cuda", "CUDAExecutionProvider", "gpu", "GPU"])
def test_options_count_by_any_word(factory_registry: FactoryRegistry, key: str) -> None:
    for options in (DeviceOptions(device_count={key: 1}), DeviceOptions(visible={key: (1,)})):
        made = DeviceMgr.create(options, factory_registry)
        assert made.num_device_type("CUDA") == 1


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("cuda:0", r"visible=\{'CUDA': \(0,\)\}"),
        ("NVIDIA", "the types for it are CUDA and TENSORRT"),
        ("dml", "DirectML"),
        ("acmee", "may mean 'Acme'"),
        ("???", "is no type here"),
    ],
)
def test_options_for_no_type_are_one_error(
    factory_registry: FactoryRegistry, key: str, said: str
) -> None:
    for options in (DeviceOptions(device_count={key: 1}), DeviceOptions(visible={key: (1,)})):
        with pytest.raises(UnknownDeviceError, match=said):
            DeviceMgr.create(options, factory_registry)


def test_kernels_are_for_types_and_classes_in_any_case(factory_registry: FactoryRegistry) -> None:
    manager = DeviceMgr.create(registry=factory_registry)
    cuda, acme = manager.lookup_device("cuda:0"), manager.lookup_device("acme")
    for word, fits in [
        ("Cuda", cuda),
        ("CUDAExecutionProvider", cuda),
        ("gpu", cuda),
        ("ACME", acme),
    ]:
        made = Kernel("x.y", print, device_type=word)
        assert [made.why_not_on(each) == "" for each in (cuda, acme)] == [
            fits is cuda,
            fits is acme,
        ]
    name: Any = "cuda"
    with pytest.raises(TypeError, match="'cuda' is no Device"):
        get_kernel("x.y", name)


@pytest.mark.parametrize(
    ("given", "label"), [("Torch", "torch"), ("PyTorch", "torch"), ("opencv", "native")]
)
def test_labels_of_cv_are_words_too(given: Any, label: str) -> None:
    from devicecore.cv.policy import current_policy

    with cv.using(given):
        assert current_policy().label == label


def test_a_misspelt_label_of_cv() -> None:
    wrong: Any = "trition"
    with pytest.raises(ValueError, match="did you mean 'triton'"), cv.using(wrong):
        pass
    wrong = "exakt"
    with pytest.raises(ValueError, match="did you mean 'exact'"), cv.accept(wrong):
        pass


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("CUDA:0", "CUDA"),
        ("openvino:GPU.1", "OPENVINO"),
        ("/device:cuda:0", "CUDA"),
        ("gpu:1", "GPU"),
    ],
)
@pytest.mark.parametrize("ask", ["get_factory", "explain", "device_priority"])
def test_a_device_where_a_type_is_asked_for(ask: str, text: str, meant: str) -> None:
    with pytest.raises(InvalidDeviceNameError) as caught:
        getattr(default_registry(), ask)(text)
    said = str(caught.value)
    assert "it names one device, and a type is asked for" in said
    assert f"did you mean {meant!r}?" in said
    assert "cuda:1" not in said


def test_a_class_is_near_no_type() -> None:
    with pytest.raises(UnknownDeviceError) as caught:
        default_registry().get_factory("gpu")
    assert "GPU is a class of devices" in str(caught.value)
    assert "did you mean" not in str(caught.value)
