"""Compares kernels with OpenCV's own functions, as exactly as each call is promised."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib.resources import files
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from devicecore.cv import catalog
from devicecore.cv.environment import environment
from devicecore.cv.native import original
from devicecore.cv.results import to_host
from devicecore.cv.self_test import keeps_promise
from tests.cv.device_limits import Limits, Refusing

IS_OLD = environment().version < (5, 0)


def compare(
    name: str,
    *args: Any,
    label: str = "torch",
    device: str = "cpu",
    limits: Limits | None = None,
    **kwargs: Any,
) -> str:
    """Compute a call of one of OpenCV's functions on tensors, and compare it with OpenCV's answer.

    Args:
        name: OpenCV's name of the function.
        args: The arguments, with arrays.
        label: Which of its kernels.
        device: torch's name of where.
        limits: What that device shall lack.
        kwargs: More arguments.

    Returns:
        What is promised of the call; ``"host"`` where there is no kernel for it.
    """
    operation = catalog.find(name, label)
    assert operation is not None
    limited = None if limits is None else limits.device()
    with nullcontext() if limits is None else Refusing(limits):
        plan = operation.plan(args, kwargs, limited)
    if plan is None and IS_OLD:
        pytest.skip("OpenCV 4 may answer what kernels compute for OpenCV 5")
    if plan is None:
        return "host"

    def moved(array: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    found_args, found_kwargs = operation.replace_images(args, kwargs, moved)
    given = [each.clone() for each in operation.images_in(found_args, found_kwargs)]
    with nullcontext() if limits is None else Refusing(limits):
        found = to_host(operation.run(limited, *found_args, **found_kwargs), plan.finish)
    for before, now in zip(given, operation.images_in(found_args, found_kwargs), strict=True):
        assert before.numpy(force=True).tobytes() == now.numpy(force=True).tobytes(), "written into"
    # After the kernel, which would else be given what OpenCV has written into an argument.
    expected = original(name)(*args, **kwargs)
    assert keeps_promise(plan.promise, found, expected), difference(found, expected)
    return str(plan.promise)


def difference(found: Any, expected: Any) -> str:
    """Say how far two results are apart."""
    if isinstance(expected, tuple):
        return "; ".join(map(difference, found, expected))
    found, expected = np.asarray(found), np.asarray(expected)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype}{found.shape} in the place of {expected.dtype}{expected.shape}"
    off = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    first = np.unravel_index(off.argmax(), off.shape) if off.size else ()
    return f"up to {off.max(initial=0)} off at {first}, {np.mean(off > 0):.4%} of the values differ"


@cache
def photo(name: str = "astronaut") -> np.ndarray[Any, Any]:
    """Return a photo of scikit-image with its blue channel first, of shape (512, 512, 3)."""
    found = cv2.imread(str(files("skimage").joinpath(f"data/{name}.png")))
    assert found is not None
    return found


def image(
    height: int, width: int, channels: int = 3, dtype: str = "uint8", seed: int = 0
) -> np.ndarray[Any, Any]:
    """Return noise of any type; without channels where *channels* is 0."""
    chance = np.random.default_rng([height, width, channels, seed])
    shape = (height, width, channels) if channels else (height, width)
    if dtype.startswith("float"):
        return chance.random(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return chance.integers(limits.min, limits.max, shape, dtype, endpoint=True)
