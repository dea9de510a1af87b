"""At DEBUG the log says which kernel was taken for a call, and why none before it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_ledger, device_scope  # noqa: E402 - like the others
from devicecore.cv import calling, choice_log, choosing  # noqa: E402 - it imports torch
from devicecore.cv.repeats import repeats_of  # noqa: E402 - it imports torch
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from devicecore.migrate import PipelineMigrator  # noqa: E402 - like the others
from tests.cv.device_limits import Limits  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PICTURE = image(8, 9)
WIDE = PICTURE.astype(np.int16)


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.DEBUG:
            self.lines.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[Callable[[], list[str]]]:
    """Return what gives the lines about calls since it was asked last."""
    choice_log._said.clear()
    logger, handler = logging.getLogger("devicecore"), Lines()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)

    def lines() -> list[str]:
        own = [each for each in handler.lines if each.startswith(("cv.", "cv2."))]
        handler.lines.clear()
        return own

    yield lines
    logger.removeHandler(handler)
    logger.setLevel(before)
    choice_log._said.clear()


def test_where_opencv_computes(said: Callable[[], list[str]]) -> None:
    def only(*words: str) -> None:
        (line,) = said()
        assert all(word in line for word in words), line

    cv.resize(PICTURE, (4, 3))
    only("cv2.resize(uint8 of 8 x 9 x 3 channels, 4, 3)", "CPU:0", "no device_scope names another")
    with device_scope("cpu"):
        cv.resize(PICTURE, (4, 3))
    only("the device_scope is of the CPU")
    cv.flip(torch.from_numpy(PICTURE), flipCode=1)
    only("cv2.flip(uint8 of 8 x 9 x 3 channels, flipCode=1)", "the tensor is on the CPU")
    with cv.using("native"):
        cv.flip(PICTURE, 1)
    only("the label 'native' is asked for")
    cv.Canny(PICTURE, 3, 4)
    only("cv2.Canny", "OpenCV itself")
    cv.preprocess(PICTURE, size=(8, 6))
    (_, last) = said()
    assert last.startswith("cv2.resize")


@pytest.mark.skipif(IS_OLD, reason="it is left to OpenCV")
@pytest.mark.parametrize("way", ["label", "plan", "a device"])
def test_kernels_and_what_is_passed_over(
    way: str, said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device is a fake of a GPU whose memory is the host's."""
    fake = Limits("a fake", "XPU", frozenset(), frozenset(), lambda _dtype: TypeError()).device()
    tensors = [torch.from_numpy(each) for each in (PICTURE, WIDE)]

    def run() -> None:
        if way == "label":
            with cv.using("torch"):
                cv.resize(tensors[0], (4, 3))
                with pytest.raises(NoKernelError):
                    cv.resize(tensors[1], (4, 3))
        elif way == "plan":
            with PipelineMigrator({"cv2.resize": {"device": "cpu", "kernel": "torch"}}):
                cv2.resize(PICTURE, (4, 3))
                cv2.resize(WIDE, (4, 3))
        else:
            monkeypatch.setitem(calling._owners, tensors[0].device, fake)
            cv.resize(tensors[0], (4, 3))
            cv.resize(tensors[1], (4, 3))

    run()
    taken, left = said()
    assert taken.startswith("cv2.resize(uint8 of 8 x 9 x 3 channels, 4, 3) on ")
    assert taken.endswith(": the torch kernel, exact; passed over: nothing")
    reason = "torch: no kernel for src=int16 of 8 x 9 x 3 channels"
    assert left.endswith(f": no kernel takes it; passed over: {reason}")
    run()
    assert said() == []
    default_ledger().clear()
    repeats_of["resize"]._known.clear()


def test_calls_that_are_alike_are_said_once(said: Callable[[], list[str]]) -> None:
    calls: list[tuple[Any, ...]] = [(PICTURE, (4, 3)), (PICTURE[:5], (7, 7)), (WIDE, (4, 3))]
    for _ in range(2):
        for call in calls:
            cv.resize(*call)
    assert [line.partition(")")[0] for line in said()] == [
        "cv2.resize(uint8 of 8 x 9 x 3 channels, 4, 3",
        "cv2.resize(int16 of 8 x 9 x 3 channels, 4, 3",
    ]


def test_nothing_is_put_together_where_nobody_reads_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "devicecore")
    for module in (calling, choosing):
        monkeypatch.setattr(module, "say_choice", None)
    tensor = torch.from_numpy(PICTURE)
    for picture in (PICTURE, tensor):
        assert cv.flip(picture, 1).shape == PICTURE.shape
    with cv.using("torch"):
        assert cv.flip(tensor, 1).shape == PICTURE.shape
