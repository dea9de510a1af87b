"""Names as other libraries write them: each is one clear error that says what is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devicecore import (
    DeviceName,
    FactoryRegistry,
    Liveness,
    default_manager,
    device_scope,
    is_gpu_available,
    resolve,
    resolve_device,
)
from devicecore.device_factory import default_registry
from devicecore.errors import InvalidDeviceNameError, NotLiveError, UnknownDeviceError
from devicecore.runtime import Runtime
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("GPU.1", "GPU:1"),
        ("cuda.0", "cuda:0"),
        ("/physical_device:GPU:0", "/device:GPU:0"),
        ("/logical_device:CPU:0", "/device:CPU:0"),
        ("TFRT_CPU_0", "CPU:0"),
        ("cuda_1", "cuda:1"),
        ("Place(gpu:0)", "gpu:0"),
        ("Place(cpu)", "cpu"),
        ("CudaDevice(id=2)", "Cuda:2"),
        ("<CUDA Device 1>", "CUDA:1"),
        ("device(type='cuda', index=1)", "cuda:1"),
        ("cuda:0 (NVIDIA H100)", "cuda:0"),
        ("cuda:0,1", "cuda:0"),
        ("vulkan", "WEBGPU"),
        ("ANE", "COREML"),
        ("opencl:0", "OPENVINO:0"),
        *((word, "") for word in ("tpu", "TPU:0", "hpu", "intel_hpu", "ipu", "mlu", "meta")),
        *((word, "") for word in ("none", "off", "tensorflow", "  ", "MULTI:", "auto", "AUTO:GPU")),
    ],
)
def test_a_name_of_another_library_says_which_of_ours_is_meant(text: str, meant: str) -> None:
    with pytest.raises(InvalidDeviceNameError) as caught:
        DeviceName.parse(text)
    assert caught.value.suggestion == meant
    assert "\n" not in str(caught.value)


SAID = {
    "tpu": "'tpu' is Google's TPU, for which devicecore has no factory",
    "intel_hpu": "'intel_hpu' is Intel's Gaudi",
    "privateuseone": "torch's word for the devices of a plug-in",
    "auto": "'auto' is a request, no device; devicecore.resolve('auto') chooses one",
    "jax": "'jax' is a framework, no device",
    "MULTI": "OpenVINO's word for several devices; OPENVINO is the type for them",
}
ENTRIES: list[Callable[[str], Any]] = [
    DeviceName.parse,
    default_registry().explain,
    default_registry().get_factory,
    lambda word: device_scope(word).__enter__(),
]


@pytest.mark.parametrize("ask", ENTRIES)
@pytest.mark.parametrize("word", SAID)
def test_every_entry_says_what_a_word_means_elsewhere(ask: Callable[[str], Any], word: str) -> None:
    with pytest.raises((InvalidDeviceNameError, UnknownDeviceError)) as caught:
        ask(word)
    assert SAID[word] in str(caught.value)
    assert "is near" not in str(caught.value)


@pytest.mark.parametrize("text", ["AUTO:GPU,CPU", "MULTI:GPU,CPU", "HETERO:", "BATCH:GPU(4)"])
def test_several_devices_of_openvino_are_no_name(text: str) -> None:
    with pytest.raises(InvalidDeviceNameError) as caught:
        DeviceName.parse(text)
    assert "request" in str(caught.value) or "OPENVINO is the type" in str(caught.value)


@pytest.mark.parametrize("wrong", [[], {}, None, 1.5, b"cuda", ("cuda", 0)])
@pytest.mark.parametrize("ask", ["get_factory", "explain", "device_priority"])
def test_what_is_no_text_is_one_error_for_types_too(ask: str, wrong: Any) -> None:
    if ask == "device_priority":  # that of what is not registered, as in TensorFlow
        assert wrong is None or default_registry().device_priority(wrong) == -1
        return
    if ask == "explain" and wrong is None:
        assert default_registry().explain(wrong)
        return
    with pytest.raises(InvalidDeviceNameError):
        getattr(default_registry(), ask)(wrong)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("cuda:1", "did you mean 'require:cuda:1'?"),
        ("GPU", "did you mean 'require:GPU'?"),
        ("fastest", ": a policy is"),
        (["cuda"], ": a policy is"),
        (b"auto", ": a policy is"),
    ],
)
def test_a_policy_that_is_none_says_what_one_is(policy: Any, said: str) -> None:
    with pytest.raises(ValueError, match="invalid policy") as caught:
        resolve(policy=policy)
    assert said in str(caught.value)


@pytest.mark.parametrize("wrong", [[], {}, ["torch"]])
def test_what_cannot_be_hashed_is_refused_as_all_else(wrong: Any) -> None:
    for ask in (is_gpu_available, lambda word: resolve(framework=word)):
        with pytest.raises(ValueError, match="there are 'onnx' and 'torch'"):
            ask(wrong)
    with pytest.raises(InvalidDeviceNameError):
        default_manager().num_device_type(wrong)


@pytest.mark.parametrize("word", ["cpu", "False", "cuda"])
def test_a_text_is_no_yes_or_no(word: Any) -> None:
    with pytest.raises(TypeError, match=rf"it is True or False, and resolve\('{word}'\) takes"):
        resolve_device(word)


def family_runtime() -> Runtime:
    """Return a runtime whose factories say what those of a machine without a GPU say: fakes."""
    registry = FactoryRegistry()
    for kind, reason in {
        "CPU": "",
        "MPS": "MPS exists on macOS only",
        "CUDA": "there is no NVIDIA GPU here",
        "TENSORRT": "there is no NVIDIA GPU here",
        "ROCM": "there is no AMD GPU here",
        "COREML": "COREML exists on macOS only",
        "OPENVINO": "",
    }.items():
        answer = Liveness("absent", reason=reason) if reason else None
        # Not to be imported by a child, so that it is probed here.
        fake: dict[str, Any] = {
            "__qualname__": f"<locals>.{kind}",
            "device_type": kind,
            "device_class": "CPU",
        }
        fake["answer"] = answer
        registry.register_class(kind, type(kind, (FakeFactory,), fake))
    return Runtime(registry)


@pytest.mark.parametrize(("word", "hardware"), [("GPU", True), ("gpu:0", True), ("npu", False)])
def test_what_a_family_lacks_is_said_everywhere_and_once(word: str, *, hardware: bool) -> None:
    runtime = family_runtime()
    asked: list[Callable[[str], Any]] = [
        lambda name: resolve(name, runtime=runtime),
        runtime.manager.lookup_device,
        runtime.device,
    ]
    lacking = "there is no NVIDIA GPU and no AMD GPU here; " if hardware else ""
    for ask in asked:
        with pytest.raises((NotLiveError, UnknownDeviceError)) as caught:
            ask(word)
        family = word[:3].upper()
        said = f"{lacking}OPENVINO: it has no device of class {family} here"
        assert said in str(caught.value)
        assert "macOS" not in str(caught.value)
        assert "GPU" in family or "NVIDIA" not in str(caught.value)
