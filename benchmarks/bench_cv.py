"""What calling OpenCV through `devicecore.cv` adds on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2")

from devicecore import cv  # noqa: E402 - like the others

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = np.zeros((8, 8, 3), np.uint8)
LARGE = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), np.uint8)


def bench_cv_small(statement: Callable[..., None]) -> None:
    assert np.array_equal(cv.resize(SMALL, (4, 4)), cv2.resize(SMALL, (4, 4)))
    statement("resize(image, (4, 4))", resize=cv.resize, image=SMALL)


def bench_peer_cv_small(statement: Callable[..., None]) -> None:
    statement("resize(image, (4, 4))", resize=cv2.resize, image=SMALL)


def bench_cv_large(benchmark: Callable[..., Any]) -> None:
    found = benchmark(cv.resize, LARGE, (224, 224))
    assert np.array_equal(found, cv2.resize(LARGE, (224, 224)))


def bench_peer_cv_large(benchmark: Callable[..., object]) -> None:
    benchmark(cv2.resize, LARGE, (224, 224))
