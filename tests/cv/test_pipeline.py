"""`cv.Pipeline`: the values of its functions one by one, wherever it runs, and what it refuses."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import Device, cv  # noqa: E402 - like the others
from devicecore.transfer import as_tensor  # noqa: E402 - like the others
from tests.cv.differential import image, photo  # noqa: E402 - it imports torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RESIZE = partial(cv.resize, dsize=(64, 48))
SWAP = partial(cv2.cvtColor, code=cv2.COLOR_BGR2RGB)
BLUR = partial(cv.GaussianBlur, ksize=(5, 3), sigmaX=0)
LABELS: Any = ["native", "torch"]


def one_by_one(picture: Any, *steps: Any) -> Any:
    for step in steps:
        found = partial(getattr(cv2, step.func.__name__), *step.args, **step.keywords)
        picture = found(picture)
    return picture


def as_input(picture: Any) -> Any:
    scaled = picture.astype(np.float32) / np.float32(255)
    wanted = (scaled - np.asarray(MEAN, np.float32)) / np.asarray(STD, np.float32)
    return wanted.transpose(2, 0, 1)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    "steps",
    [
        (),
        (RESIZE, SWAP, BLUR),
        (partial(cv.flip, flipCode=1), partial(cv2.medianBlur, ksize=3)),
        (partial(cv.cvtColor, code=cv2.COLOR_BGR2GRAY), cv2.equalizeHist),
    ],
    ids=["none", "three", "of cv2", "a plane"],
)
def test_images(label: Any, steps: Any) -> None:
    made = cv.Pipeline(steps)
    pictures = [photo(), image(60, 90)]
    expected = [one_by_one(each, *map(partial, steps)) for each in pictures]
    with cv.using(label):
        assert np.array_equal(made(pictures[0]), expected[0])
        assert np.array_equal(made(torch.from_numpy(pictures[0])).numpy(), expected[0])
        for found, wanted in zip(made(pictures), expected, strict=True):
            assert np.array_equal(found, wanted)
        both = made(np.stack([pictures[1]] * 2))
    assert np.array_equal(both[1].squeeze(), expected[1])


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    ("steps", "fused"),
    [
        ((RESIZE,), True),
        ((RESIZE, BLUR), True),
        ((RESIZE, SWAP, BLUR), True),
        ((RESIZE, BLUR, SWAP), False),
        ((partial(RESIZE, interpolation=cv2.INTER_AREA), SWAP), False),
        ((partial(cv.resize, dsize=None, fx=0.5, fy=0.25),), False),
        ((RESIZE, partial(BLUR, sigmaX=2)), False),
        ((RESIZE, partial(cv.cvtColor, code=cv2.COLOR_BGR2HSV)), False),
    ],
)
def test_inputs_of_a_network(label: Any, steps: Any, fused: bool) -> None:
    made = cv.Pipeline(steps, mean=MEAN, std=STD)
    assert (made._fused is not None) == fused
    picture = photo()
    expected = as_input(one_by_one(picture, *steps))
    with cv.using(label):
        found = made([picture, picture[::-1].copy()])
        assert np.array_equal(found[0].numpy(), expected)
        assert found.shape == (2, *expected.shape)
        assert np.array_equal(made(torch.from_numpy(picture))[0].numpy(), expected)
        assert made(picture[None]).shape == (1, *expected.shape)


def test_planes_and_layouts() -> None:
    made = cv.Pipeline([RESIZE], std=0.5, layout="NHWC", dtype="float16")
    found = made(photo()[..., 0])
    assert (found.shape, found.dtype) == ((1, 48, 64, 1), torch.float16)
    expected = cv2.resize(photo()[..., 0], (64, 48)) / np.float32(255) / np.float32(0.5)
    assert np.array_equal(found[0, ..., 0].numpy(), expected.astype(np.float16))


def test_arrays_go_to_another_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is the CPU under another name: there is no accelerator for tests."""
    device = Device("/device:ACME:0", torch_device="cpu")
    moved: list[Any] = []

    def watched(given: Any, target: Any) -> Any:
        moved.append(target)
        return as_tensor(given, target)

    for module in ("dispatch", "pipeline"):
        monkeypatch.setattr(f"devicecore.cv.{module}.current_device", lambda: device)
        monkeypatch.setattr(f"devicecore.cv.{module}.device_for", lambda *_: device)
    monkeypatch.setattr("devicecore.cv.pipeline.as_tensor", watched)
    steps = (RESIZE, SWAP, BLUR)
    found = cv.Pipeline(steps)(photo())
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, one_by_one(photo(), *steps))
    assert moved == [device]


@pytest.mark.parametrize(
    "step",
    [np.flipud, partial(np.rot90, k=1), "resize", partial(cv2.imread, flags=1), cv2.minAreaRect],
)
def test_only_functions_of_pixels_are_steps(step: Any) -> None:
    with pytest.raises(TypeError, match=r"functools\.partial"):
        cv.Pipeline([step])


def test_what_gives_no_image_is_no_step() -> None:
    made = cv.Pipeline([partial(cv.threshold, thresh=9, maxval=255, type=0)])
    with pytest.raises(TypeError, match="threshold gives a tuple"):
        made(photo())


def test_inputs_that_cannot_be() -> None:
    swap, other = cv.Pipeline([SWAP], mean=0.5), cast("Any", "int8")
    with pytest.raises(ValueError, match="one size"):
        swap([photo(), image(9, 9)])
    with pytest.raises(ValueError, match="bytes"):
        swap(image(9, 9, 3, "float32"))
    with pytest.raises(ValueError, match="dtype is one of"):
        cv.Pipeline([SWAP], mean=0.5, dtype=other)(photo())


def test_it_says_what_it_does_and_can_be_sent() -> None:
    made = cv.Pipeline([RESIZE, SWAP], mean=0.5)
    assert repr(made) == "Pipeline(resize, cvtColor)"
    again = pickle.loads(pickle.dumps(made))
    assert torch.equal(again(photo()), made(photo()))
