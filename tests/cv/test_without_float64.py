"""Kernels on devices without float64, which the fakes of `device_limits` stand for."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv import catalog  # noqa: E402 - like the others
from devicecore.cv.plan import PROMISES  # noqa: E402 - like the others
from devicecore.cv.quarantine import tested  # noqa: E402 - it imports torch
from tests.cv.device_limits import MPS, XPU, Limits, Refusing  # noqa: E402 - it imports torch

LIMITS = [pytest.param(each, id=each.device_type) for each in (MPS, XPU)]
# Functions that compute nothing there, or nothing that is at least within tolerance, and why.
SET_ASIDE: dict[str, str] = {}


def promises_of(name: str, device: Any) -> list[str]:
    """Return what is promised of each of a function's examples that *device* computes."""
    operation = catalog.find(name, "torch")
    assert operation is not None
    plans = [operation.plan(args, kwargs, device) for args, kwargs in operation.examples()]
    return [plan.promise for plan in plans if plan is not None]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", sorted(catalog.TORCH))
def test_each_function_keeps_its_promises(name: str, limits: Limits) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    device = limits.device()
    with Refusing(limits):
        assert tested(operation, device) == ""
        found = promises_of(name, device)
    good = [each for each in found if PROMISES.index(each) <= PROMISES.index("tolerance")]
    assert bool(good) == (name not in SET_ASIDE)
