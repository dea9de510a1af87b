"""`cv2.LUT` and `cv2.applyColorMap` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from tests.cv.differential import IS_OLD, compare, image, photo  # noqa: E402 - it imports torch

TYPES = ["uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64"]
sizes = st.tuples(st.integers(1, 40), st.integers(1, 40))


def table(shape: tuple[int, ...], dtype: str = "uint8") -> Any:
    return np.random.default_rng(len(shape)).integers(0, 128, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(256,), (1, 256), (256, 1), (16, 16), (1, 256, 1)])
@given(sizes, st.integers(0, 6))
def test_one_table_for_all_channels(
    dtype: str, shape: tuple[int, ...], size: tuple[int, int], channels: int
) -> None:
    assert compare("LUT", image(*size, channels), table(shape, dtype)) == "exact"


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, st.integers(1, 6), st.sampled_from([(1, 256), (256, 1), (16, 16)]))
def test_a_table_for_each_channel(
    dtype: str, size: tuple[int, int], channels: int, shape: tuple[int, int]
) -> None:
    tables = table((*shape, channels), dtype)
    assert compare("LUT", image(*size, channels), tables) == "exact"


def test_another_table_is_another_result() -> None:
    for seed in range(3):
        chance = np.random.default_rng(seed)
        assert compare("LUT", photo(), chance.integers(0, 256, 256, np.uint8)) == "exact"


@pytest.mark.parametrize(
    "lut",
    [
        table((255,)),
        table((256, 3)),
        table((3, 256)),
        table((1, 256, 2)),
        table((1, 256, 3, 1)),
        table((256,), "bool"),
        table((256,), "int64"),
        list(range(256)),
        None,
    ],
)
def test_tables_for_opencv_to_judge(lut: Any) -> None:
    assert compare("LUT", image(6, 8), lut) == "host"


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32"])
def test_images_for_opencv_to_judge(dtype: str) -> None:
    assert compare("LUT", image(6, 8, 3, dtype), table((256,))) == "host"


@pytest.mark.parametrize("number", range(22))
@given(sizes, st.sampled_from([0, 1, 3]))
def test_colour_maps(number: int, size: tuple[int, int], channels: int) -> None:
    assert compare("applyColorMap", image(*size, channels), number) == "exact"


@pytest.mark.parametrize("shape", [(256, 1), (256, 1, 1), (256, 1, 3)])
def test_own_colour_maps(shape: tuple[int, ...]) -> None:
    assert compare("applyColorMap", photo(), table(shape)) == "exact"
    assert compare("applyColorMap", photo()[..., 0], userColor=table(shape)) == "exact"


@pytest.mark.skipif(IS_OLD, reason="OpenCV 4 takes one of them")
@pytest.mark.parametrize(
    "asked", [22, -1, 1.0, True, None, table((256,)), table((1, 256)), table((256, 1), "uint16")]
)
def test_colour_maps_for_opencv_to_judge(asked: Any) -> None:
    assert compare("applyColorMap", image(6, 8), asked) == "host"


@pytest.mark.parametrize(("channels", "dtype"), [(2, "uint8"), (4, "uint8"), (3, "uint16")])
def test_images_without_a_colour_map(channels: int, dtype: str) -> None:
    assert compare("applyColorMap", image(6, 8, channels, dtype), cv2.COLORMAP_JET) == "host"
