"""Calls like one before are computed as it was, unless something else has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, device_scope  # noqa: E402 - like the others
from devicecore.cv.dispatch_cache import DispatchCache, dispatch_caches  # noqa: E402 - it imports torch
from devicecore.errors import NoKernelError, ScopeError  # noqa: E402 - like the others
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Callable

PICTURE = torch.from_numpy(image(30, 40))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets an entry for each call: whether one like it was made before."""
    entries: list[bool] = []
    find = DispatchCache.find

    def watched(self: DispatchCache, *args: Any) -> Any:
        cached = find(self, *args)
        entries.append(cached is not None)
        return cached

    for each in dispatch_caches.values():
        each._known.clear()
    monkeypatch.setattr(DispatchCache, "find", watched)
    return entries


CALLS: dict[str, tuple[Callable[..., Any], list[bool]]] = {
    "flip": (lambda m, x: m.flip(x, 1), [False, True]),
    "a name": (lambda m, x: m.flip(x, flipCode=1), [False, True]),
    "two images": (lambda m, x: m.add(x, x), [False, True]),
    "numbers between": (lambda m, x: m.addWeighted(x, 0.7, x, 0.3, 2.5), [False, True]),
    "a tuple": (lambda m, x: m.resize(x, (20, 15)), [False, True]),
    "a plane": (lambda m, x: m.flip(x[..., 0], 1), [False, True]),
    # These are told apart in the long way.
    "named images": (lambda m, x: m.add(src1=x, src2=x), []),
    "a place": (lambda m, x: m.flip(x, 1, x * 0), [False, False]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call(name: str, found: list[bool]) -> None:
    call, known = CALLS[name]
    pictures = (PICTURE, PICTURE.flip(0))
    with cv.using("torch"):
        results = [call(cv, each) for each in pictures]
    assert found == known
    for result, given in zip(results, pictures, strict=True):
        expected = call(cv2, np.ascontiguousarray(given.numpy()))
        assert np.array_equal(result.numpy(), expected)


def test_other_kinds_are_others(found: list[bool]) -> None:
    with cv.using("torch"):
        for picture in (PICTURE, PICTURE[:20], PICTURE[..., :1], PICTURE[None]):
            cv.flip(picture, 1)
        cv.flip(PICTURE, 0)
    cv.flip(PICTURE, 1)  # on the CPU that is OpenCV's
    with cv.using("triton"), pytest.raises(NoKernelError):
        cv.flip(PICTURE, 1)
    assert not any(found)


def test_a_scope_of_another_device_is_noticed() -> None:
    with cv.using("torch"):
        cv.flip(PICTURE, 1)
        with device_scope("cpu:0"):
            cv.flip(PICTURE, 1)
        with device_scope("meta"), pytest.raises(ScopeError):
            cv.flip(PICTURE, 1)


@pytest.mark.skipif(IS_OLD, reason="OpenCV 4 has another rule for numbers")
@pytest.mark.usefixtures("found")
def test_zeros_of_both_signs_are_other_kinds() -> None:
    numbers = torch.tensor([[1.0, -2, 3, 4] * 5])
    with cv.using("torch"):
        for zero in (0.0, -0.0, 0.0):
            expected = cv2.divide(numbers.numpy(), zero)
            assert np.array_equal(cv.divide(numbers, zero).numpy(), expected)
