"""`Liveness` and `PhysicalDevice`: values that go through JSON unchanged."""

from __future__ import annotations

import json
import pickle
from typing import get_args

import pytest
from attrs import evolve

from devicecore.liveness import Evidence, Liveness, PhysicalDevice, State

GPU = PhysicalDevice(
    "CUDA",
    1,
    physical_id="GPU-1234",
    description="NVIDIA H200",
    memory_bytes=150_000_000_000,
    numa_node=0,
    details={"compute_capability": "9.0"},
)
TORCH = Liveness("live", "ran", reason="computed on cuda:1", devices=(GPU,))
ONNX = Liveness(
    "broken", "opened", "libcudnn.so.9 is missing", "all of it\nand more", "pip install"
)


def full() -> Liveness:
    return Liveness(
        "live",
        "ran",
        reason="one of two",
        frameworks={"torch": TORCH, "onnx": ONNX},
        seconds=1.5,
        devices=(GPU,),
    )


def test_it_goes_through_json_unchanged() -> None:
    text = json.dumps(full().to_json())
    back = Liveness.from_json(json.loads(text))
    assert back == full()
    assert back.frameworks["onnx"] == ONNX
    assert back.devices == (GPU,)
    assert back.seconds == 1.5


def test_it_pickles() -> None:
    assert pickle.loads(pickle.dumps(full())) == full()
    assert pickle.loads(pickle.dumps(GPU)) == GPU


def test_how_long_it_took_does_not_matter_for_equality() -> None:
    assert evolve(TORCH, seconds=9.0) == TORCH


@pytest.mark.parametrize("state", get_args(State))
@pytest.mark.parametrize("evidence", get_args(Evidence))
def test_only_what_ran_is_live(state: State, evidence: Evidence) -> None:
    assert Liveness(state, evidence).is_live == (state == "live" and evidence == "ran")


def test_another_state_is_refused() -> None:
    with pytest.raises(ValueError, match="state"):
        Liveness("fine")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="evidence"):
        Liveness("live", "believed")  # type: ignore[arg-type]


def test_each_framework_has_a_liveness_of_its_own() -> None:
    assert full().of(None) == full()
    assert full().of("torch") is TORCH
    assert full().of("onnx") is ONNX


def test_what_was_not_asked_about_is_absent_only_if_the_rest_lives() -> None:
    live = Liveness("live", "ran")
    assert live.of("torch").state == "absent"
    broken = Liveness("broken", reason="no driver")
    assert broken.of("torch") is broken


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"state": "fine"},
        {"state": "live", "colour": "red"},
        {"state": "live", "frameworks": {"torch": "yes"}},
        {"state": "live", "frameworks": ["torch"]},
        {"state": "live", "frameworks": 3},
        {"state": "live", "devices": 3},
        {"state": "live", "devices": ["cuda:0"]},
        {"state": "live", "devices": [{"name": "cuda:0"}]},
    ],
    ids=str,
)
def test_nonsense_in_json_is_a_type_or_value_error(nonsense: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Liveness.from_json(nonsense)
