"""`cv2.cvtColor` on torch tensors: which conversion each code is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.operation import operation
from devicecore.cv.ops.color import demosaic, hue, lab, lab_inverse, linear, yuv420
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like
from devicecore.cv.torch_support.dtypes import unsigned_as_signed
from devicecore.cv.torch_support.pixels import (
    BLUE_FIRST,
    BLUE_LAST,
    channels_asked,
    has_colours,
    pixels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor
    Conversion = Callable[[Image, int], Plan | None]

_ORDERS = {"BGR": BLUE_FIRST, "RGB": BLUE_LAST}
# Before its first call of one of these, OpenCV computes tables for half a second.
_SLOW_AT_FIRST = ("Lab", "Luv")


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of the codes that OpenCV answers at once."""
    chance = np.random.default_rng(6)
    for name, code in _NAMES.items():
        if any(each in name for each in _SLOW_AT_FIRST):
            continue
        source = name.split("2", maxsplit=1)[0]
        if source == "GRAY" or source.startswith("Bayer") or name in _OF_PLANES:
            shape: tuple[int, ...] = (6, 44)
        else:
            shape = (6, 44, 4 if source in {"BGRA", "RGBA"} else 3)
        yield (chance.integers(0, 256, shape, np.uint8), code), {}


# Spaces of which a call may choose whether they have an alpha channel.
_CHOSEN = frozenset({"BGR", "RGB", "BGRA", "RGBA"})


def _converted(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    src: Image = given["src"]
    name = next(name for name, code in _NAMES.items() if code == given["code"])
    before, _, after = name.partition("2")
    space, _, layout = after.partition("_")
    width, height = src.size
    if before == "YUV" and layout:
        height = height * 2 // 3
    if space == "YUV" and layout:
        return (like(src, size=(width, height * 3 // 2), channels=1),)
    channels = {"GRAY": 1, "BGRA": 4, "RGBA": 4}.get(space, 3)
    if space in _CHOSEN:
        channels = given["dstCn"] or channels
    return (like(src, size=(width, height), channels=channels),)


@operation("src", examples=examples, result=_converted)
def cvtColor(
    src: Image,
    code: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    dstCn: int = 0,
    hint: int = cv2.ALGO_HINT_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.cvtColor``."""
    conversion = _CONVERSIONS.get(whole(code))
    if conversion is None or not src.pixels or whole(hint) == cv2.ALGO_HINT_APPROX:
        return None
    return conversion(src, whole(dstCn))


def _shuffled(src: Image, asked: int, *, default: int, turns: bool) -> Plan | None:
    """Plan a conversion between BGR, RGB, BGRA and RGBA."""
    channels = channels_asked(asked, default)
    if not has_colours(src) or channels is None or src.dtype not in {"uint8", "uint16", "float32"}:
        return None
    blue = BLUE_LAST if turns else BLUE_FIRST

    def run(images: Tensor) -> Tensor:
        if channels == 4 > images.shape[-1]:
            return pixels(tuple(images[..., place] for place in range(3)), blue, 4)
        plain = unsigned_as_signed(images)
        result = [plain[..., place] for place in (blue, 1, 2 - blue, 3)[:channels]]
        return torch.stack(result, -1).view(images.dtype)

    return Plan(run)


def _one_way(planner: Callable[..., Plan | None], **given: Any) -> Conversion:
    """Return a conversion to a space whose channels cannot be chosen."""
    return lambda src, _: planner(src, **given)


def _back(planner: Callable[..., Plan | None], **given: Any) -> Conversion:
    return lambda src, asked: planner(src, asked=asked, **given)


def _shuffles() -> Iterator[tuple[str, Conversion]]:
    for given in ("BGR", "RGB", "BGRA", "RGBA"):
        for wanted in ("BGR", "RGB", "BGRA", "RGBA"):
            turns = given[0] != wanted[0]
            if given != wanted:
                yield (
                    f"{given}2{wanted}",
                    partial(_shuffled, default=len(wanted), turns=turns),
                )


def _of_order(order: str, blue: int) -> Iterator[tuple[str, Conversion]]:
    spaces = linear
    for alpha in ("", "A"):
        yield f"{order}{alpha}2GRAY", _one_way(spaces.to_gray, blue=blue)
        yield f"GRAY2{order}{alpha}", _back(spaces.from_gray, default=3 + len(alpha))
    yield f"{order}2XYZ", _one_way(spaces.to_xyz, blue=blue)
    yield f"XYZ2{order}", _back(spaces.from_xyz, blue=blue)
    for space in ("YCrCb", "YUV"):
        yield f"{order}2{space}", _one_way(spaces.to_luma, blue=blue, space=space)
        yield f"{space}2{order}", _back(spaces.from_luma, blue=blue, space=space)
    for full in ("", "_FULL"):
        yield f"{order}2HSV{full}", _one_way(hue.to_hsv, blue=blue, is_full=bool(full))
        yield f"HSV2{order}{full}", _back(hue.from_hsv, blue=blue, is_full=bool(full))
        yield f"{order}2HLS{full}", _one_way(hue.to_hls, blue=blue, is_full=bool(full))
        yield f"HLS2{order}{full}", _back(hue.from_hls, blue=blue, is_full=bool(full))
    yield f"{order}2Lab", _one_way(lab.to_lab, blue=blue)
    yield f"{order}2Luv", _one_way(lab.to_luv, blue=blue)
    for space in ("Lab", "Luv"):
        yield f"{space}2{order}", _back(lab_inverse.from_space, blue=blue, space=space)
    for alpha in ("", "A"):
        for layout in ("I420", "YV12", "NV12", "NV21"):
            planner = _back(yuv420.from_planes, blue=blue, default=3 + len(alpha), layout=layout)
            yield f"YUV2{order}{alpha}_{layout}", planner
        for layout in ("I420", "YV12"):
            planner = _one_way(yuv420.to_planes, blue=blue, layout=layout)
            yield f"{order}{alpha}2YUV_{layout}", planner


def _mosaics() -> Iterator[tuple[str, Conversion]]:
    for pattern in demosaic.PATTERNS:
        for name, channels in (("BGR", 3), ("BGRA", 4)):
            planner = _back(demosaic.to_colours, pattern=pattern, channels=channels)
            yield f"Bayer{pattern}2{name}", planner
        yield f"Bayer{pattern}2GRAY", _one_way(demosaic.to_gray, pattern=pattern)


def _all() -> Iterator[tuple[str, Conversion]]:
    yield from _shuffles()
    yield from _mosaics()
    for order, blue in _ORDERS.items():
        yield from _of_order(order, blue)
    yield "YUV2GRAY_420", _one_way(yuv420.luma_plane)


_NAMED = dict(_all())
_NAMES = {name: getattr(cv2, f"COLOR_{name}") for name in _NAMED}
_OF_PLANES = {name for name in _NAMES if name.startswith("YUV2") and "_" in name}
_CONVERSIONS: dict[int, Conversion] = {_NAMES[name]: each for name, each in _NAMED.items()}
