"""Triton's kernels of colours and of places, in its interpreter: random images, against OpenCV."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("triton")

from tests.cv.test_triton import interpreted

START = """
import cv2, numpy as np, torch
from tests.cv.differential import compare, image
from tests.cv.interpreting import watch
watch()
torch.cuda.current_device = lambda: None  # as the index of the host
chance = np.random.default_rng(1)
def random_image(channels, most=40):
    height, width = map(int, chance.integers(1, most, 2))
    return image(height, width, channels, seed=int(chance.integers(1 << 30)))
def check(name, *args, **kwargs):
    assert compare(name, *args, label="triton", **kwargs) != "host", (name, args[1:], kwargs)
"""

COLOURS = """
from devicecore.cv.ops.color import triton as color_triton
for code in sorted(color_triton._CONVERSIONS):
    names = (each for each in dir(cv2) if each.startswith("COLOR_"))
    name = next(each for each in names if getattr(cv2, each) == code)
    source = name.removeprefix("COLOR_").split("2")[0]
    own = 1 if source == "GRAY" else 4 if source in ("BGRA", "RGBA") else 3
    if "HLS" in name and "FULL" in name or "HSV2" in name and "FULL" in name:
        continue  # near, with IPP
    for asked in (0, 4):
        check("cvtColor", random_image(own, 60), code, dstCn=asked)
    print(name)
# Many colours of all kinds, where a last bit would show.
color_triton._BLOCK = 1 << 14
numbers = np.arange(0, 1 << 24, 37, dtype=np.uint32)[: 1 << 18]
many = np.ascontiguousarray(numbers.view(np.uint8).reshape(512, 512, 4)[..., :3])
for code in (cv2.COLOR_BGR2HSV, cv2.COLOR_RGB2HSV_FULL, cv2.COLOR_BGR2Lab, cv2.COLOR_Lab2BGR):
    check("cvtColor", many, code)
"""


PLACES = """
from devicecore.cv.triton_support import gather
for channels in (1, 2, 3, 4):
    for block in (4, 16, 256):
        gather._BLOCK = block
        picture = random_image(channels, 12)
        for code in (0, 1, -1):
            check("flip", picture, code)
        for code in range(3):
            check("rotate", picture, code)
        check("transpose", picture)
        for sides in ((8, 12), (68, 132)):  # in groups of four pixels
            for code in (0, 2):
                check("rotate", image(*sides, channels), code)
            check("transpose", image(*sides, channels))
        if channels > 1:
            check("split", picture)
            check("merge", [np.ascontiguousarray(plane) for plane in np.moveaxis(picture, 2, 0)])
            check("extractChannel", picture, channels - 1)
        for border in (0, 1, 2, 3, 4):
            margins = map(int, chance.integers(0, 6, 4))
            check("copyMakeBorder", picture, *margins, border, value=(1, 2, 3, 250))
    print(channels)
"""

PAIRS = """
from devicecore.cv.triton_support import pointwise
pointwise._WORDS = 1 << 14
a, b = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
names = ["add", "subtract", "absdiff", "min", "max", "bitwise_and", "bitwise_or", "bitwise_xor"]
for name in names:
    check(name, a, b)
for scale in (1, 0.004, -1, 0.37, 255, 1 / 255, 3, 32.2, -0.013, 1e-30):
    for name in ("multiply", "divide"):
        check(name, a, b, scale=scale)
for weights in ((0.25, 0.5, 3), (-1.7, 2.6, 0.5), (0.003, -0.1, 20.5), (9000, -9001.5, 2.5)):
    check("addWeighted", a, weights[0], b, *weights[1:])
for height, width, channels in ((1, 1, 1), (3, 7, 3), (5, 5, 4)):
    for name in (*names, "divide"):
        check(name, *(image(height, width, channels, seed=seed) for seed in (1, 2)))
print(len(names))
"""

SIZES = """
for flag in range(7):
    for channels in (1, 2, 3, 4):
        height, width, high, wide = map(int, chance.integers(2, 24, 4))
        picture = image(height, width, channels)
        check("resize", picture, (wide, high), interpolation=flag)
for channels in (1, 2, 3, 4):
    for across, down in ((2, 2), (3, 3), (2, 4), (5, 1)):
        picture = image(3 * down, 8 * across, channels)
        check("resize", picture, (8, 3), interpolation=cv2.INTER_AREA)
    check("resize", image(6, 16, channels), (8, 3))
    check("resize", image(5, 9, channels), None, fx=0.7, fy=1.3)
print(flag)
"""

WARPS = """
for flag in (cv2.INTER_LINEAR, cv2.INTER_NEAREST):
    for border in range(5):
        for channels in (1, 3, 4):
            picture = random_image(channels, 24)
            high, wide = map(int, chance.integers(1, 20, 2))
            options = {"borderMode": border, "borderValue": (7, 80, 200, 9)}
            turn = cv2.getRotationMatrix2D(chance.uniform(0, 20, 2), chance.uniform(-180, 180), 0.7)
            check("warpAffine", picture, turn, (wide, high), flags=flag, **options)
            tilt = np.vstack([turn, [*chance.uniform(-3e-3, 3e-3, 2), 1]])
            check("warpPerspective", picture, tilt, (wide, high), flags=flag, **options)
            maps = chance.uniform(-30, 50, (high, wide, 2)).astype(np.float32)
            maps[::3] = np.rint(maps[::3] * 2) / 2
            maps[::4, ::3] *= 1e6
            check("remap", picture, maps, None, flag, **options)
            across, down = (np.ascontiguousarray(maps[..., axis]) for axis in (0, 1))
            check("remap", picture, across, down, flag | 32, **options)
# Most of these lie inside of the image.
for channels in (1, 3, 4):
    picture = image(60, 90, channels)
    turn = cv2.getRotationMatrix2D((40, 30), 7, 1.2)
    tilt = np.vstack([turn, [2e-4, -1e-4, 1]])
    for border in (0, 4):
        check("warpAffine", picture, turn, (90, 60), borderMode=border)
        check("warpPerspective", picture, tilt, (70, 50), borderMode=border)
print(channels)
"""

# Whole programs of these read inside of the image, in groups of four pixels and one by one.
INSIDE = """
from devicecore.cv.ops.warp import triton as warp_triton
for width, wide in ((128, 128), (125, 130)):
    picture = image(60, width, channels)
    turn = cv2.getRotationMatrix2D((60, 30), 9, 1.4)
    tilt = np.vstack([turn, [3e-4, -2e-4, 1]])
    test = warp_triton._inner_test(np.linalg.inv(tilt), (width, 60), (wide, 40))
    corners = np.array([(x, y, 1) for x in (0, 64) for y in range(0, 40, 8)])
    off_x, off_y, most_x, most_y = np.reshape(test, (4, 3)) @ corners.T
    assert ((abs(off_x) <= most_x) & (abs(off_y) <= most_y)).any()
    across, down = np.meshgrid(np.arange(wide), np.arange(40))
    maps = np.stack([across + 3 * np.sin(down / 7) + 4, down + 3 * np.cos(across / 9) + 3], 2)
    maps = maps.astype(np.float32)
    for flag in (cv2.INTER_LINEAR, cv2.INTER_NEAREST):
        check("warpAffine", picture, turn, (wide, 40), flags=flag)
        check("warpPerspective", picture, tilt, (wide, 40), flags=flag)
        check("remap", picture, maps, None, flag)
        check("remap", picture, *map(np.ascontiguousarray, np.moveaxis(maps, 2, 0)), flag)
print(channels)
"""

BATCHES = """
from devicecore.cv import catalog
from devicecore.cv.results import batch_results
def check_batch(name, images, *args, **kwargs):
    operation = catalog.find(name, "triton")
    found = batch_results(operation.run(None, images, *args, **kwargs))
    maps = (each.numpy() if isinstance(each, torch.Tensor) else each for each in args)
    given = list(maps)
    for own, picture in zip(found, images.numpy(), strict=True):
        wanted = getattr(cv2, name)(np.ascontiguousarray(picture), *given, **kwargs)
        assert np.array_equal(np.squeeze(own), np.squeeze(wanted)), (name, args, kwargs)
turn = cv2.getRotationMatrix2D((5, 4), 20, 0.9)
maps = torch.from_numpy(chance.uniform(-3, 12, (8, 9, 2)).astype(np.float32))
# One after the other; not beside one another in memory; and from a byte on that begins no word.
for channels in (1, 3, 4):
    whole = torch.from_numpy(image(3 * 8, 24, channels)).view(3, 8, 24, channels)
    odd = torch.from_numpy(image(3, 4 * 7 * 9 * channels + 1, 1)).flatten()[1:]
    odd = odd[: 3 * 7 * 9 * channels].view(3, 7, 9, channels)
    for images in (whole[:, 1::2, 2:], whole, odd):
        check_batch("flip", images, 1)
        check_batch("rotate", images, 0)
        check_batch("copyMakeBorder", images, 1, 2, 3, 2, 4)
        check_batch("resize", images, (10, 6))
        check_batch("resize", images, (4, 2), interpolation=cv2.INTER_AREA)
        check_batch("resize", images, (20, 9), interpolation=cv2.INTER_NEAREST)
        check_batch("warpAffine", images, turn, (9, 8))
        check_batch("remap", images, maps, None, cv2.INTER_LINEAR)
        check_batch("LUT", images, np.arange(256, dtype=np.uint8)[::-1].copy())
        if channels == 3:
            check_batch("cvtColor", images, cv2.COLOR_BGR2HSV)
            check_batch("cvtColor", images, cv2.COLOR_HSV2BGR)
            check_batch("extractChannel", images, 1)
    print(channels)

# Several images are read at the same places, most of which lie inside of them.
from devicecore.cv.ops.warp import triton as warp_triton
warp_triton._IMAGES = (2, 1)
turn = cv2.getRotationMatrix2D((60, 30), 9, 1.4)
tilt = np.vstack([turn, [3e-4, -2e-4, 1]])
across, down = np.meshgrid(np.arange(128), np.arange(40))
maps = np.stack([across + 3 * np.sin(down / 7) + 4, down + 3 * np.cos(across / 9) + 3], 2)
maps = torch.from_numpy(maps.astype(np.float32))
for channels, width in ((1, 128), (3, 128), (3, 125), (4, 130)):
    images = torch.from_numpy(image(3 * 60, width, channels)).view(3, 60, width, channels)
    for flag in (cv2.INTER_LINEAR, cv2.INTER_NEAREST):
        check_batch("warpAffine", images, turn, (128, 40), flags=flag)
        check_batch("warpPerspective", images, tilt, (126, 40), flags=flag)
        check_batch("remap", images, maps, None, flag)
    print(width)
"""


@pytest.mark.long
@pytest.mark.parametrize("code", [COLOURS, PLACES, PAIRS, SIZES, WARPS, BATCHES])
def test_against_opencv(code: str) -> None:
    assert interpreted(START + code)


@pytest.mark.long
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_warps_inside_of_the_image(channels: int) -> None:
    assert interpreted(START + f"channels = {channels}" + INSIDE) == [str(channels)]
