"""A plan states shapes and types of its results; kernels give them on torch's meta device."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")

from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.image import image_of  # noqa: E402 - it imports cv2
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports torch


def on_meta(array: Any) -> Any:
    return torch.empty(array.shape, dtype=getattr(torch, array.dtype.name), device="meta")


def described(result: Any) -> list[tuple[tuple[int, ...], Any]]:
    if isinstance(result, (tuple, list)):
        return [found for each in result for found in described(each)]
    return [(tuple(result.shape), np.dtype(str(result.dtype).removeprefix("torch.")))]


@pytest.mark.parametrize("has_float64", [True, False])
@pytest.mark.parametrize("name", sorted(catalog.TORCH))
def test_kernels_give_what_plans_state(name: str, has_float64: bool) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    missing = frozenset() if has_float64 else frozenset({"float64"})
    planned = 0
    step = 2 if has_float64 else 7  # planning takes most of the time
    for args, kwargs in islice(operation.examples(), 0, None, step):
        images = operation.images_in(args, kwargs)
        if not has_float64 and any(each.dtype == np.float64 for each in images):
            continue
        plan = operation.make_plan(*operation.describe(args, kwargs, missing))
        if plan is None:
            continue
        planned += 1
        result = plan.kernel(None, *map(on_meta, images))
        assert described(result) == list(plan.result), (args[1:], kwargs)
    if IS_OLD and not planned:
        pytest.skip("OpenCV 4 answers it itself")
    assert planned


@pytest.mark.parametrize("code", ["YUV2BGR_I420", "BGR2YUV_YV12", "BayerRG2BGR", "BGR2GRAY"])
def test_colors(code: str) -> None:
    operation = catalog.find("cvtColor", "torch")
    cv2 = pytest.importorskip("cv2")
    assert operation is not None
    channels = 1 if code.startswith(("YUV", "Bayer")) else 3
    image = np.zeros((12, 8, channels)[: 2 + (channels > 1)], np.uint8)
    number = getattr(cv2, f"COLOR_{code}")
    plan = operation.make_plan([image_of(image.shape, image.dtype), number], {})
    assert plan is not None
    expected = cv2.cvtColor(image, number)
    assert plan.result == ((expected.shape, expected.dtype),)
