"""Builds of ONNX Runtime that are not here: what their sessions are opened with.

`InferenceSession` is a stand-in that takes note of its providers; the rest is devicecore's own.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import onnxruntime  # type: ignore[import-untyped]
import pytest

from devicecore.device import Device
from devicecore.errors import NotLiveError
from devicecore.ledger import Ledger
from devicecore.onnx import OnnxModel
from devicecore.ort import SessionSpec
from devicecore.ort.provider_options import Preferences, provider_options
from devicecore.ort.session_creation import Recipe, add_provider, create
from devicecore.ort.tiny_model import tiny_model

TENSORRT, CUDA, COREML = (f"{name}ExecutionProvider" for name in ("Tensorrt", "CUDA", "CoreML"))
TENSORRT_RTX, OPENVINO = "NvTensorRTRTXExecutionProvider", "OpenVINOExecutionProvider"
F32, DEFAULT = Preferences("f32"), Preferences("default")


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The providers of the build."""
    names = [TENSORRT, CUDA, COREML, "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: names)
    return names


def providers_of(monkeypatch: pytest.MonkeyPatch, spec: SessionSpec) -> list[Any]:
    """Return the providers that a session of *spec* is opened with."""
    seen: list[Any] = []

    def session(*_args: object, providers: list[Any], **_: object) -> None:
        seen.extend(providers)
        raise RuntimeError

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    with pytest.raises(NotLiveError):
        create(Recipe(tiny_model(), "m", spec))
    return seen


@pytest.mark.parametrize("index", ["0", "1"])
def test_what_tensorrt_leaves_stays_on_its_gpu(
    monkeypatch: pytest.MonkeyPatch, available: list[str], index: str
) -> None:
    first, second = providers_of(monkeypatch, SessionSpec(TENSORRT, {"device_id": index}))
    assert first == (TENSORRT, {"device_id": index})
    assert second == (
        CUDA,
        {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"} | {"device_id": index},
    )


def test_the_options_of_a_programs_own_session_hold_both(available: list[str]) -> None:
    added: list[str] = []
    options = SimpleNamespace(add_provider=lambda name, _: added.append(name))
    add_provider(onnxruntime, options, SessionSpec(TENSORRT, {"device_id": "1"}), F32)
    assert added == [TENSORRT, CUDA]


def test_a_build_without_cuda_has_nothing_in_between(
    monkeypatch: pytest.MonkeyPatch, available: list[str]
) -> None:
    available.remove(CUDA)
    assert [name for name, _ in providers_of(monkeypatch, SessionSpec(TENSORRT))] == [TENSORRT]


@pytest.mark.parametrize("provider", [CUDA, COREML])
def test_other_providers_stand_alone(
    monkeypatch: pytest.MonkeyPatch, available: list[str], provider: str
) -> None:
    assert [name for name, _ in providers_of(monkeypatch, SessionSpec(provider))] == [provider]


@pytest.mark.parametrize(("index", "gpu"), [(0, "0"), (1, "1")])
def test_what_the_plug_in_of_tensorrt_leaves_stays_on_its_gpu(
    monkeypatch: pytest.MonkeyPatch, available: list[str], index: int, gpu: str
) -> None:
    """A fake of the plug-in, which this machine has no GPU for."""
    added: list[Any] = []
    options = SimpleNamespace(
        add_provider=lambda name, options: added.append((name, options["device_id"])),
        add_provider_for_devices=lambda devices, _: added.extend(devices),
    )
    device = SimpleNamespace(ep_metadata={})
    monkeypatch.setattr("devicecore.ort.session_creation.native_device", lambda *_: device)
    add_provider(onnxruntime, options, SessionSpec(TENSORRT_RTX, {}, index), F32)
    assert added == [device, (CUDA, gpu)]
    available.remove(CUDA)
    added.clear()
    add_provider(onnxruntime, options, SessionSpec(TENSORRT_RTX, {}, index), F32)
    assert added == [device]


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        (SessionSpec(OPENVINO, {"device_type": "NPU"}), {}),
        (SessionSpec(OPENVINO, {"device_type": "AUTO:NPU,CPU"}), {}),
        (SessionSpec(OPENVINO, {}, 0), {"ov_device": "NPU"}),
    ],
    ids=["built in", "AUTO", "plug-in"],
)
def test_the_ledger_says_that_an_npu_has_no_float32(
    monkeypatch: pytest.MonkeyPatch,
    available: list[str],
    spec: SessionSpec,
    metadata: dict[str, str],
) -> None:
    """A fake NPU."""
    available.append(OPENVINO)
    options = SimpleNamespace(
        add_provider=lambda *_: None, add_provider_for_devices=lambda *_: None
    )
    device = SimpleNamespace(ep_metadata=metadata)
    monkeypatch.setattr("devicecore.ort.session_creation.native_device", lambda *_: device)
    for preferences, count in ((F32, 1), (DEFAULT, 0)):
        ledger = Ledger()
        monkeypatch.setattr(
            "devicecore.ort.session_creation.default_ledger", lambda ledger=ledger: ledger
        )
        add_provider(onnxruntime, options, spec, preferences)
        assert len(ledger.moves()) == count
        assert all("an NPU has no float32" in move.reason for move in ledger.moves())


def test_coreml_computes_in_float32_unless_told_otherwise() -> None:
    """Its first format, NeuralNetwork, has no types: GPU and neural engine halve them."""
    assert provider_options(SessionSpec(COREML), F32, {})["ModelFormat"] == "MLProgram"
    assert provider_options(SessionSpec(COREML), DEFAULT, {}) == {}
    own = SessionSpec(COREML, {"ModelFormat": "NeuralNetwork", "MLComputeUnits": "CPUOnly"})
    assert provider_options(own, F32, {})["ModelFormat"] == "NeuralNetwork"


def test_the_ledger_says_where_the_rest_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    session = SimpleNamespace(
        left_nodes={CUDA: 3, "CPUExecutionProvider": 1},
        total_nodes=9,
        spec=SessionSpec(TENSORRT),
        session=SimpleNamespace(
            get_inputs=list, get_outputs=list, get_overridable_initializers=list
        ),
    )
    monkeypatch.setattr("devicecore.onnx.model.default_ledger", lambda: ledger)
    monkeypatch.setattr("devicecore.onnx.model.open_session", lambda *_, **__: session)
    device = Device("/device:TENSORRT:0", session=SessionSpec(TENSORRT), frameworks=("onnx",))
    OnnxModel(tiny_model()).session(device)
    assert {(move.target, move.reason) for move in ledger.moves()} == {
        ("CUDA", f"{TENSORRT} does not take 3 of the 9 nodes"),
        ("CPU", f"{TENSORRT} does not take 1 of the 9 nodes"),
    }
