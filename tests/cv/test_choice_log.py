"""At DEBUG the log says which kernel was taken for a call, and why none before it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_ledger, device_scope  # noqa: E402 - like the others
from devicecore.cv import catalog, choice_log, dispatch, kernel_choice  # noqa: E402 - it imports torch
from devicecore.cv.dispatch_cache import dispatch_caches  # noqa: E402 - it imports torch
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
    only(
        "cv2.resize(uint8 of 8 x 9 x 3 channels, (4, 3))", "CPU:0", "no device_scope names another"
    )
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
            monkeypatch.setitem(dispatch._owners, tensors[0].device, fake)
            cv.resize(tensors[0], (4, 3))
            cv.resize(tensors[1], (4, 3))

    run()
    taken, left = said()
    assert taken.startswith("cv2.resize(uint8 of 8 x 9 x 3 channels, (4, 3)) on ")
    assert taken.endswith(": the torch kernel, exact; passed over: nothing")
    reason = "torch: no kernel for src=int16 of 8 x 9 x 3 channels"
    assert left.endswith(f": no kernel takes it; passed over: {reason}")
    run()
    assert said() == []
    default_ledger().clear()
    dispatch_caches["resize"]._known.clear()


def test_calls_that_are_alike_are_said_once(said: Callable[[], list[str]]) -> None:
    calls: list[tuple[Any, ...]] = [(PICTURE, (4, 3)), (PICTURE[:5], (7, 7)), (WIDE, (4, 3))]
    for _ in range(2):
        for call in calls:
            cv.resize(*call)
    assert [line.partition(")")[0] for line in said()] == [
        "cv2.resize(uint8 of 8 x 9 x 3 channels, (4, 3",
        "cv2.resize(int16 of 8 x 9 x 3 channels, (4, 3",
    ]


def test_nothing_is_put_together_where_nobody_reads_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "devicecore")
    for module in (dispatch, kernel_choice):
        monkeypatch.setattr(module, "say_choice", None)
    tensor = torch.from_numpy(PICTURE)
    for picture in (PICTURE, tensor):
        assert cv.flip(picture, 1).shape == PICTURE.shape
    with cv.using("torch"):
        assert cv.flip(tensor, 1).shape == PICTURE.shape


class Size(NamedTuple):
    w: int
    h: int


class Faulty:
    """Looks like an image, and is none."""

    ndim = 2
    shape = (3, 4)

    def __repr__(self) -> str:
        raise OSError


class Unshaped(Faulty):
    @property
    def shape(self) -> Any:  # type: ignore[override]
        raise OSError


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
ODD: list[Any] = [Faulty(), Unshaped(), [Faulty()], ENDLESS, [ENDLESS] * 3, 10**5000, {1: ENDLESS}]


@pytest.mark.parametrize("label", ["native", "torch"])
def test_a_named_tuple_is_a_tuple(label: Any, said: Callable[[], list[str]]) -> None:
    expected = cv2.resize(PICTURE, Size(4, 3))
    for picture in (PICTURE, torch.from_numpy(PICTURE)):
        with cv.using(label):
            found = cv.resize(picture, Size(4, 3))
        assert np.array_equal(np.asarray(found), expected)
    assert all("channels, (4, 3)) on " in line for line in said())


def test_images_in_a_named_tuple(said: Callable[[], list[str]]) -> None:
    planes: Any = Size(*cv2.split(PICTURE)[:2])
    wide: Any = Size(*(plane.astype(np.int32) for plane in planes))
    with cv.using("torch"):
        assert np.array_equal(cv.merge(planes), cv2.merge(planes))
    operation = catalog.find("merge", "torch")
    assert operation is not None
    assert operation.why_not((Size(wide[0], planes[1]),), {})
    assert np.array_equal(cv.merge(Size(*map(torch.from_numpy, wide))), cv2.merge(wide))
    assert said()[-1].startswith("cv2.merge((int32 of 8 x 9, int32 of 8 x 9)) on ")


@pytest.mark.parametrize("index", range(len(ODD)))
def test_no_line_changes_what_comes_out(index: int, said: Callable[[], list[str]]) -> None:
    def outcome() -> Any:
        try:
            return cv.resize(PICTURE, ODD[index])
        except Exception as error:  # noqa: BLE001 - whatever OpenCV makes of it
            return type(error), str(error)

    found, lines = outcome(), said()
    logging.getLogger("devicecore").setLevel(logging.INFO)
    assert found == outcome()
    assert len(lines) == 1
    what = "Faulty", "Unshaped", "[Faulty]", "[[[[...]]]]", "[[[...", "int", "{1: [[...]]}"
    assert f"channels, {what[index]}" in lines[0].replace("[[[[...]]], [", "[[[...")


def test_brackets(said: Callable[[], list[str]]) -> None:
    for value in ((4, 3), [4, 3], (4,), [(0, 1), [2]], [WIDE[..., 0], PICTURE]):
        choice_log.say_choice("resize", "a device", (value,), {}, "nobody", {})
    assert [line.partition(" on a device")[0] for line in said()] == [
        "cv2.resize((4, 3))",
        "cv2.resize([4, 3])",
        "cv2.resize((4,))",
        "cv2.resize([(0, 1), [2]])",
        "cv2.resize([int16 of 8 x 9, uint8 of 8 x 9 x 3 channels])",
    ]
