"""Reasons are found a few times only for calls that differ in numbers and sizes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv.image import image_of  # noqa: E402 - it imports cv2
from devicecore.cv.reasons import Reasons  # noqa: E402 - it imports cv2

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 8
CHANCE = np.random.default_rng(0)
PICTURE = image_of((8, 9, 3), "uint8")

VARIED: dict[str, Callable[[], list[Any]]] = {
    "numbers": lambda: [PICTURE, CHANCE.random()],
    "numbers of numpy": lambda: [PICTURE, CHANCE.random(dtype=np.float32)],
    "arrays": lambda: [PICTURE, CHANCE.random((2, 3))],
    "large arrays": lambda: [PICTURE, CHANCE.random((200, 200))],
    "sizes of arrays": lambda: [PICTURE, np.ones(CHANCE.integers(1, 99, 2))],
    "sizes": lambda: [PICTURE, tuple(map(int, CHANCE.integers(1, 99, 2)))],
    "images": lambda: [image_of((*map(int, CHANCE.integers(1, 99, 2)), 3), "uint8")],
}


@pytest.mark.parametrize("vary", VARIED.values(), ids=VARIED)
@pytest.mark.parametrize("is_named", [False, True])
def test_random_calls_are_searched_for_a_few_times(
    vary: Callable[[], list[Any]], is_named: bool
) -> None:
    reasons, searched = Reasons(), Counter[str]()

    def search() -> str:
        searched["all"] += 1
        return f"the reason number {searched['all']}"

    last = ""
    for _ in range(100):
        args = vary()
        named = {f"parameter{at}": value for at, value in enumerate(args)} if is_named else {}
        last = reasons.find("", [] if is_named else args, named, search)
    assert searched["all"] == MOST
    assert last == f"the reason number {MOST}"


def test_what_matters_has_a_reason_of_its_own() -> None:
    reasons = Reasons()
    different: list[list[Any]] = [
        [PICTURE],
        [PICTURE, 1],
        [PICTURE, 2],
        [PICTURE, True],
        [PICTURE, 1.0],
        [PICTURE, None],
        [PICTURE, "text"],
        [PICTURE, (1, 2)],
        [PICTURE, (1.0, 2)],
        [PICTURE, np.float32(1)],
        [PICTURE, np.ones(2)],
        [PICTURE, np.ones((1, 2))],
        [PICTURE, np.ones(2, np.int32)],
        [image_of((8, 9, 3), "float32")],
        [image_of((8, 9, 4), "uint8")],
        [image_of((8, 9), "uint8")],
        [image_of((0, 9, 3), "uint8")],
        [image_of((8, 9, 3), "uint8", frozenset({"float64"}))],
        [[PICTURE, PICTURE]],
        [[PICTURE, image_of((8, 9), "uint8")]],
    ]
    for number in range(len(different) * MOST * 2):
        at = number % len(different)
        assert reasons.find("", different[at], {}, partial(str, at)) == str(at)
    assert reasons.find("about something else", [PICTURE], {}, lambda: "other") == "other"


def test_a_call_that_comes_again_keeps_its_own_reason() -> None:
    reasons = Reasons()
    for number in range(MOST):
        assert reasons.find("", [float(number)], {}, partial(str, number)) == str(number)
    assert reasons.find("", [1e9], {}, lambda: "not looked for") == str(MOST - 1)
    for number in range(MOST):
        assert reasons.find("", [float(number)], {}, lambda: "never") == str(number)
