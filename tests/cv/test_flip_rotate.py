"""`cv2.copyMakeBorder`, `flip`, `rotate` and `transpose` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

import torch  # noqa: E402 - may be absent

from devicecore.cv import border_index  # noqa: E402 - it imports cv2
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

BORDERS = ("CONSTANT", "REPLICATE", "REFLECT", "REFLECT_101", "WRAP")
TYPES = ("uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64")
sizes = st.integers(1, 12)
margins = st.integers(0, 30)
numbers = st.integers(-70000, 70000) | st.floats(-300, 300) | st.booleans()


@pytest.mark.parametrize("border", BORDERS)
@given(st.integers(1, 9), st.integers(-50, 50))
def test_every_place_outside(border: str, length: int, place: int) -> None:
    kind = getattr(cv2, f"BORDER_{border}")
    expected = cv2.borderInterpolate(place, length, kind)
    before = max(0, -place)
    found = border_index.border_index(length, before, max(0, place + 1 - length), kind)
    assert found[place + before] == expected
    if border == "CONSTANT":
        with pytest.raises(ValueError, match="repeats no pixels"):
            border_index.border_pixels(np.arange(3), length, kind)
    else:
        assert border_index.border_pixels(torch.tensor(place), length, kind) == expected


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", TYPES)
@given(
    sizes,
    sizes,
    st.integers(0, 4),
    st.tuples(margins, margins, margins, margins),
    st.lists(numbers, max_size=4) | st.lists(numbers, max_size=4).map(tuple) | numbers,
)
def test_borders(
    border: str,
    dtype: str,
    height: int,
    width: int,
    channels: int,
    around: tuple[int, int, int, int],
    value: Any,
) -> None:
    picture = image(height, width, channels, dtype)
    kind = getattr(cv2, f"BORDER_{border}")
    assert compare("copyMakeBorder", picture, *around, kind, value=value) == "exact"
    assert compare("copyMakeBorder", picture, *around, kind | cv2.BORDER_ISOLATED) == "exact"


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("channels", [5, 6, 31])
def test_a_border_around_many_channels(border: str, channels: int) -> None:
    kind = getattr(cv2, f"BORDER_{border}")
    picture = image(7, 9, channels)
    assert compare("copyMakeBorder", picture, 1, 2, 3, 4, kind, value=(9, 9, 9, 9)) == "exact"
    # OpenCV wants the same number four times.
    expected = "host" if border == "CONSTANT" else "exact"
    assert compare("copyMakeBorder", picture, 1, 2, 3, 4, kind, value=9) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        (True, 0, 0, 0, 0),
        (1.0, 0, 0, 0, 0),
        (-1, 0, 0, 0, 0),
        (1, 0, 0, 0, 4.0),
        (1, 0, 0, 0, cv2.BORDER_TRANSPARENT),
        (1, 0, 0, 0, 77),
        (1, 0, 0, 0, 0, None, "red"),
        (1, 0, 0, 0, 0, None, np.float32(3)),
        (1, 0, 0, 0, 0, None, (1, 2, 3, 4, 5)),
        (1, 0, 0, 0, 0, None, float("nan")),
        (1, 0, 0, 0, 0, None, 1e10),
        (1 << 40, 0, 0, 0, 0),
    ],
)
def test_borders_for_opencv_to_judge(arguments: Any) -> None:
    assert compare("copyMakeBorder", image(3, 4), *arguments) == "host"


def test_empty_images_are_for_opencv() -> None:
    for shape in ((0, 5, 3), (5, 0, 3)):
        empty = np.zeros(shape, np.uint8)
        assert compare("copyMakeBorder", empty, 1, 1, 1, 1, cv2.BORDER_CONSTANT) == "host"
        assert compare("flip", empty, 1) == "host"
        assert compare("rotate", empty, 1) == "host"
        assert compare("transpose", empty) == "host"


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, st.integers(0, 6))
def test_turning(dtype: str, height: int, width: int, channels: int) -> None:
    picture = image(height, width, channels, dtype)
    for code in (0, 1, -1, 5, -7, np.int64(1)):
        assert compare("flip", picture, code) == "exact"
    assert compare("rotate", picture, cv2.ROTATE_180) == "exact"
    expected = "exact" if channels <= 4 else "host"
    assert compare("rotate", picture, cv2.ROTATE_90_CLOCKWISE) == expected
    assert compare("rotate", picture, cv2.ROTATE_90_COUNTERCLOCKWISE) == expected
    assert compare("transpose", picture) == expected


@pytest.mark.parametrize("code", [True, 1.0, "1", None])
def test_codes_for_opencv_to_judge(code: Any) -> None:
    assert compare("flip", image(3, 4), code) == "host"
    assert compare("rotate", image(3, 4), code) == "host"
    assert compare("rotate", image(3, 4), 3) == "host"


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::-2], np.s_[5:99, 7:200, ::-1]])
def test_views_of_a_photo(view: Any) -> None:
    picture = photo()[view]
    assert compare("flip", picture, -1) == "exact"
    assert compare("rotate", picture, 0) == "exact"
    assert compare("copyMakeBorder", picture, 3, 4, 600, 6, cv2.BORDER_REFLECT_101) == "exact"


def test_a_result_is_never_the_source() -> None:
    from devicecore.cv.ops.flip_rotate import torch as flip_rotate_torch

    for shape in ((1, 7, 3), (7, 1, 3), (4, 5, 3), (1, 1, 1)):
        source = torch.zeros(shape, dtype=torch.uint8)
        results = [flip_rotate_torch.flip.run(None, source, code) for code in (0, 1, -1)]
        results += [flip_rotate_torch.rotate.run(None, source, code) for code in range(3)]
        for result in (*results, flip_rotate_torch.transpose.run(None, source)):
            assert result.is_contiguous()
            assert result.data_ptr() != source.data_ptr()
