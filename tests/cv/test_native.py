"""OpenCV's functions as kernels of the CPU."""

import subprocess
import sys

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.errors import NoKernelError
from devicecore.kernels import get_kernel

cv2 = pytest.importorskip("cv2")
from devicecore.cv import catalog  # noqa: E402 - it imports cv2

CPU = Device("/device:CPU:0")
IMAGE = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
CORNERS = np.array([[2, 1], [25, 3], [24, 17], [1, 15]], np.float32)
SQUARE = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], np.float32)

CALLS = {
    "resize": ((IMAGE, (15, 10)), {"interpolation": cv2.INTER_AREA}),
    "cvtColor": ((IMAGE, cv2.COLOR_BGR2GRAY), {}),
    "copyMakeBorder": ((IMAGE, 1, 2, 3, 4, cv2.BORDER_REPLICATE), {}),
    "dilate": ((IMAGE, np.ones((2, 2), np.uint8)), {}),
    "getPerspectiveTransform": ((CORNERS, SQUARE), {}),
    "warpPerspective": ((IMAGE, np.eye(3), (10, 12)), {"flags": cv2.INTER_CUBIC}),
    "minAreaRect": ((CORNERS,), {}),
    "boxPoints": ((((5, 5), (4, 2), 30.0),), {}),
    "mean": ((IMAGE,), {}),
    "findContours": (
        ((IMAGE[..., 0] > 127).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE),
        {},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_gives_what_cv2_gives(name: str) -> None:
    args, kwargs = CALLS[name]
    expected = getattr(cv2, name)(*args, **kwargs)
    np.testing.assert_equal(CPU.compute(f"cv2.{name}", *args, **kwargs), expected)


@pytest.mark.parametrize("name", ["fillPoly", "polylines"])
def test_what_draws_into_its_argument_is_not_pure(name: str) -> None:
    ours, theirs = np.zeros((2, 20, 30), np.uint8)
    shape = [CORNERS.astype(np.int32)]
    rest = (9,) if name == "fillPoly" else (True, 9)
    CPU.compute(f"cv2.{name}", ours, shape, *rest)
    getattr(cv2, name)(theirs, shape, *rest)
    assert ours.any()
    np.testing.assert_array_equal(ours, theirs)
    assert not get_kernel(f"cv2.{name}", CPU).pure
    assert get_kernel("cv2.resize", CPU).pure


def test_every_kernel_is_tested() -> None:
    own = {name for name, row in catalog.ROWS.items() if not row.dispatched}
    assert own
    assert {*CALLS, "fillPoly", "polylines"} >= own


def test_patching_cv2_does_not_reach_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cv2.resize(IMAGE, (5, 5))
    monkeypatch.setattr(cv2, "resize", lambda *args: None)
    np.testing.assert_array_equal(CPU.compute("cv2.resize", IMAGE, (5, 5)), expected)


def test_cv2s_own_errors_come_through() -> None:
    with pytest.raises(cv2.error, match="resize"):
        CPU.compute("cv2.resize", IMAGE, (0, 0))


def test_they_are_the_cpus_only() -> None:
    with pytest.raises(NoKernelError, match="it is for CPU"):
        Device("/device:NPU:0").compute("cv2.resize", IMAGE, (5, 5))


def test_they_are_found_by_name_without_an_import() -> None:
    code = """
import sys
import devicecore.device
assert "cv2" not in sys.modules
import numpy as np
cpu = devicecore.device.Device("/device:CPU:0")
print(cpu.compute("cv2.resize", np.zeros((4, 4), np.uint8), (2, 3)).shape)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "(3, 2)\n"
