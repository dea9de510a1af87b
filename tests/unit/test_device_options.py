"""What options say is taken in any case, and refused where it means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from devicecore.device_factory import DeviceOptions
from devicecore.device_factory.options import checked

TYPES = frozenset({"CPU", "CUDA"})


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (("pytorch",), ("torch",)),
        (("Torch",), ("torch",)),
        (("ONNX", "onnxruntime", "PyTorch"), ("onnx", "torch")),
        ((), ()),
    ],
)
def test_frameworks_are_taken_in_any_case(asked: tuple[str, ...], meant: tuple[str, ...]) -> None:
    assert checked(DeviceOptions(frameworks=asked), TYPES).frameworks == meant


def test_an_unknown_framework_is_refused_with_the_near_one() -> None:
    with pytest.raises(ValueError, match=r"'troch'.*did you mean 'torch'"):
        checked(DeviceOptions(frameworks=("troch",)), TYPES)


@pytest.mark.parametrize(
    "options",
    [
        {"device_count": {"cpu": 1, "CPU": 2}},
        {"visible": {"Cuda": (0,), "CUDA": (1,), "CPU": (0,)}},
    ],
)
def test_a_type_that_is_named_twice_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="mean the same; name it once"):
        checked(DeviceOptions(**options), TYPES)
