"""`preprocess`, against the functions of OpenCV and numpy that it stands for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

import numpy as np  # noqa: E402 - like the others

from devicecore import cv, device_scope  # noqa: E402 - it imports torch
from devicecore.cv.ops.preprocess import tables as preprocess_tables  # noqa: E402 - the same
from tests.cv.differential import image, photo  # noqa: E402 - the same

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def expected(
    picture: Any, size: tuple[int, int], mode: str, blur: Any = None, *, swap: bool = False
) -> Any:
    """Return planes that OpenCV and numpy compute step by step."""
    height, width = picture.shape[:2]
    if mode == "stretch":
        canvas = cv2.resize(picture, size)
    else:
        both = size[0] / width, size[1] / height
        factor = min(both) if mode == "letterbox" else max(both)
        wide, high = (max(round(length * factor), 1) for length in (width, height))
        if mode == "crop":
            wide, high = max(wide, size[0]), max(high, size[1])
            left, top = round((wide - size[0]) / 2), round((high - size[1]) / 2)
            resized = cv2.resize(picture, (wide, high))
            canvas = resized[top : top + size[1], left : left + size[0]]
        else:
            left, top = (round((a - b) / 2 - 0.1) for a, b in zip(size, (wide, high), strict=True))
            around = top, size[1] - high - top, left, size[0] - wide - left
            resized = cv2.resize(picture, (wide, high))
            grey = (114,) * 4
            canvas = cv2.copyMakeBorder(resized, *around, cv2.BORDER_CONSTANT, value=grey)
    if swap:
        canvas = cv2.cvtColor(canvas, cv2.COLOR_BGR2RGB)
    if blur:
        canvas = cv2.GaussianBlur(canvas, blur, 0)
    canvas = canvas.reshape(size[1], size[0], -1).astype(np.float32) / 255
    count = canvas.shape[2]
    values = (canvas - np.array(MEAN[:count], np.float32)) / np.array(STD[:count], np.float32)
    return values.transpose(2, 0, 1)


lengths = st.integers(1, 60)


@pytest.mark.parametrize("mode", preprocess_tables.MODES)
@given(lengths, lengths, st.integers(4, 40), st.integers(4, 40), st.sampled_from([1, 3]))
def test_the_same_values_as_step_by_step(
    mode: Any, height: int, width: int, wide: int, high: int, channels: int
) -> None:
    picture = image(height, width, channels)
    found = cv.preprocess(
        picture, (wide, high), mode=mode, blur=3, mean=MEAN[:channels], std=STD[:channels]
    )
    assert found.shape == (1, channels, high, wide)
    assert np.array_equal(found[0].numpy(), expected(picture, (wide, high), mode, (3, 3)))


@pytest.mark.parametrize("mode", preprocess_tables.MODES)
def test_photos_of_any_sizes(mode: Any) -> None:
    photos = [photo(), photo()[:300, 3:], photo()[100:, :77]]
    found = cv.preprocess(
        photos, (224, 192), mode=mode, color=cv2.COLOR_BGR2RGB, mean=MEAN, std=STD
    )
    for own, picture in zip(found, photos, strict=True):
        assert np.array_equal(own.numpy(), expected(picture, (224, 192), mode, swap=True))


def test_tensors_batches_layouts_and_types() -> None:
    batch = image(40, 30)[None].repeat(2, 0)
    found = cv.preprocess(batch, 16, mean=MEAN, std=STD)
    assert torch.equal(found, cv.preprocess(torch.from_numpy(batch), 16, mean=MEAN, std=STD))
    last = cv.preprocess(list(batch), 16, mean=MEAN, std=STD, layout="NHWC")
    assert torch.equal(last.permute(0, 3, 1, 2), found)
    half = cv.preprocess(batch, 16, mean=MEAN, std=STD, dtype="float16")
    assert torch.equal(half, found.half())
    with device_scope("cpu"):
        assert torch.equal(cv.preprocess(batch, (16, 16), mean=MEAN, std=STD), found)


def test_a_border_of_another_colour() -> None:
    found = cv.preprocess(np.full((10, 20, 3), 255, np.uint8), 20, border=0)
    assert found[0, 0, :, 0].tolist() == [0.0] * 5 + [1.0] * 10 + [0.0] * 5


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"mode": "fill"}, "mode"),
        ({"layout": "CHW"}, "layout"),
        ({"dtype": "int8"}, "dtype"),
        ({"color": cv2.COLOR_BGR2GRAY}, "color"),
    ],
)
def test_arguments_without_a_meaning(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        cv.preprocess(image(8, 8), 4, **arguments)


def test_images_of_other_types_or_of_several_kinds() -> None:
    with pytest.raises(ValueError, match="bytes"):
        cv.preprocess(image(8, 8, 3, "float32"), 4)
    with pytest.raises(ValueError, match="channels"):
        cv.preprocess([image(8, 8, 3), image(8, 8, 1)], 4)


@pytest.mark.parametrize(
    ("images", "size", "options", "words"),
    [
        ([], 8, {}, "no image"),
        (None, 8, {}, "no image"),
        ([image(9, 9), torch.from_numpy(image(9, 9))], 8, {}, "all arrays or all tensors"),
        (np.zeros((0, 9, 3), np.uint8), 8, {}, "have pixels"),
        (image(9, 9), 0, {}, "size is"),
        (image(9, 9), (8.7, 8), {}, "size is"),
        (image(9, 9), (8, 8, 8), {}, "size is"),
        (image(9, 9), 8, {"border": 300}, "border is"),
        (image(9, 9), 8, {"border": 1.5}, "border is"),
        (image(9, 9), 8, {"std": 0}, "zeros"),
        (image(9, 9), 8, {"std": (1, 0, 1)}, "zeros"),
        (image(9, 9), 8, {"mean": "1"}, "mean and std"),
        (image(9, 9), 8, {"mean": ([1], 2, 3)}, "mean and std"),
        (image(9, 9), 8, {"mean": float("nan")}, "mean and std"),
    ],
    ids=range(14),
)
def test_arguments_without_meaning(images: Any, size: Any, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cv.preprocess(images, size, **options)


def test_numbers_of_numpy() -> None:
    picture = image(9, 9)
    found = cv.preprocess(picture, np.int64(8), mean=np.float32(0.5))  # type: ignore[arg-type]
    assert torch.equal(found, cv.preprocess(picture, (8, 8), mean=0.5))
