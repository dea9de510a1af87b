"""Several GPUs and several frameworks give one answer, and nothing of what was learnt is lost."""

from __future__ import annotations

import pytest

from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore_factories import _answers

LIVE = Liveness("live", "ran", reason="it computed")
BROKEN = Liveness("broken", "opened", reason="no kernel for sm_61", fix="another build")
MISSING = Liveness("missing", reason="no such package", fix="pip install it")
ABSENT = Liveness("absent", reason="no GPU")
GPUS = (PhysicalDevice("CUDA", 0, "GPU-a"), PhysicalDevice("CUDA", 1, "GPU-b"))


def test_one_gpu_that_works_is_enough_and_the_other_is_explained() -> None:
    answer = _answers.of_gpus("torch", [(GPUS[0], BROKEN), (GPUS[1], LIVE)])
    assert answer.is_live
    assert "CUDA:0: no kernel for sm_61" in answer.detail
    assert _answers.live_frameworks(answer.devices[0], ("torch", "onnx")) == ("onnx",)
    assert _answers.live_frameworks(answer.devices[1], ("torch", "onnx")) == ("torch", "onnx")


def test_where_no_gpu_works_the_first_reason_is_given() -> None:
    answer = _answers.of_gpus("onnx", [(GPUS[0], BROKEN), (GPUS[1], MISSING)])
    assert (answer.state, answer.reason, answer.fix) == ("broken", BROKEN.reason, BROKEN.fix)


def test_no_gpu_at_all_is_absent() -> None:
    assert _answers.of_gpus("onnx", []).state == "absent"


@pytest.mark.parametrize(
    ("torch", "onnx", "state"),
    [
        (LIVE, BROKEN, "live"),
        (MISSING, LIVE, "live"),
        (MISSING, BROKEN, "broken"),
        (ABSENT, MISSING, "missing"),
        (ABSENT, ABSENT, "absent"),
    ],
)
def test_the_framework_nearest_to_live_speaks_for_the_devices(
    torch: Liveness, onnx: Liveness, state: str
) -> None:
    answer = _answers.of_frameworks({"torch": torch, "onnx": onnx})
    assert answer.state == state
    assert answer.of("torch") == torch
    assert answer.of("onnx") == onnx


def test_what_two_frameworks_know_of_a_gpu_is_joined() -> None:
    torch = _answers.of_gpus("torch", [(GPUS[0], BROKEN)])
    session = PhysicalDevice("CUDA", 0, "GPU-a", details={"session": "{}"})
    joined = _answers.of_frameworks(
        {"torch": torch, "onnx": _answers.of_gpus("onnx", [(session, LIVE)])}
    )
    (gpu,) = joined.devices
    assert gpu.details["session"] == "{}"
    assert _answers.live_frameworks(gpu, ("torch", "onnx")) == ("onnx",)


def test_an_error_keeps_its_state_if_a_probe_has_it() -> None:
    assert _answers.not_live(NotLiveError("X", "absent", "none")).state == "absent"
    answer = _answers.not_live(NotLiveError("X", "on fire", "smoke", "water"))
    assert answer == Liveness("broken", "opened", "smoke", fix="water")
