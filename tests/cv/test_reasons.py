"""Reasons are searched for a few times only for calls that differ in numbers and sizes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_ledger  # noqa: E402 - like the others
from devicecore.cv import catalog, dispatch  # noqa: E402 - it imports torch
from devicecore.cv.dispatch_cache import dispatch_caches  # noqa: E402 - it imports torch
from devicecore.cv.image import image_of  # noqa: E402 - it imports cv2
from devicecore.cv.operation import Operation  # noqa: E402 - it imports cv2
from devicecore.cv.reasons import KeyedCall, Reasons  # noqa: E402 - it imports cv2
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from tests.cv.device_limits import Limits  # noqa: E402 - it imports torch

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

    def search() -> tuple[str, ...]:
        searched["all"] += 1
        return (f"argument{searched['all']}",)

    last: tuple[str, ...] = ()
    for _ in range(100):
        args = vary()
        named = {f"parameter{at}": value for at, value in enumerate(args)} if is_named else {}
        last = reasons.causes("", KeyedCall([] if is_named else args, named, None), search)
    assert searched["all"] == MOST
    assert last == (f"argument{MOST}",)


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
        call = KeyedCall(different[at], {}, None)
        assert reasons.causes("", call, lambda: (str(at),)) == (str(at),)  # noqa: B023 - at once
    call = KeyedCall([PICTURE], {}, None)
    assert reasons.causes("about something else", call, lambda: ("other",)) == ("other",)


def test_a_call_that_comes_again_keeps_its_own_reason() -> None:
    reasons = Reasons()
    for number in range(MOST):
        call = KeyedCall([], {}, float(number))
        assert reasons.text("", call, partial(str, number)) == str(number)
    for number in range(MOST):
        assert reasons.text("", KeyedCall([], {}, float(number)), lambda: "never") == str(number)
    unknown = KeyedCall([], {}, None)
    assert [reasons.text("", unknown, partial(str, each)) for each in (1, 2)] == ["1", "2"]


def test_values_are_each_calls_own() -> None:
    operation = catalog.find("resize", "torch")
    assert operation is not None
    picture = np.zeros((8, 9, 3), np.uint8)
    for number in range(3 * MOST):
        size = (10.5 + number, 10)
        assert f"dsize=({size[0]}, 10)" in operation.why_not((picture, size), {})
    for height in range(4, 4 + 3 * MOST):
        wide = np.zeros((height, 9, 3), np.int16)
        assert f"src=int16 of {height} x 9" in operation.why_not((wide, (3, 3)), {})


def test_a_refused_call_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake GPU, whose memory is the host's: only there does OpenCV stand in for kernels."""
    fake = Limits("a fake", "XPU", frozenset(), frozenset(), lambda _dtype: TypeError()).device()
    picture, asked = torch.zeros((8, 9, 3), dtype=torch.int16), Counter[str]()
    monkeypatch.setitem(dispatch._owners, picture.device, fake)
    judge = Operation.judge

    def counted(*args: Any) -> Any:
        asked["all"] += 1
        return judge(*args)

    monkeypatch.setattr(Operation, "judge", counted)
    dispatch_caches["resize"]._known.clear()
    default_ledger().clear()
    for _ in range(3):
        assert cv.resize(picture, (4, 3)).shape == (3, 4, 3)
    (move,) = default_ledger().moves()
    assert move.reason == "torch: no kernel for src=int16 of 8 x 9 x 3 channels"
    assert (default_ledger().total, asked["all"]) == (3, 1)
    place = torch.zeros((3, 4, 3), dtype=torch.int16)
    assert cv.resize(picture, (4, 3), place) is place
    with cv.strict(), pytest.raises(NoKernelError, match="src=int16"):
        cv.resize(picture, (4, 3))
    with pytest.raises(cv2.error):
        cv.resize(picture, (0, 0))
    default_ledger().clear()
    dispatch_caches["resize"]._known.clear()
