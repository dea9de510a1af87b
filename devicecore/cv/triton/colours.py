"""`cv2.cvtColor` by kernels of Triton: orders of channels, and gray."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import torch

from devicecore.cv.operation import Operation
from devicecore.cv.ops import colours
from devicecore.cv.plan import Plan
from devicecore.cv.triton.kernels import pointwise as kernels
from devicecore.cv.triton.launching import Launch, current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

_BLOCK, _WARPS = 1024, 4
_ORDERS = ("BGR", "RGB", "BGRA", "RGBA")
_SHARES = (3735, 19235, 9798)  # of blue, green and red, in 15 bits


def _codes() -> dict[int, tuple[str, str]]:
    """Return what each code converts from and to."""
    pairs = [(source, target) for source in _ORDERS for target in (*_ORDERS, "GRAY")]
    found = {getattr(cv2, f"COLOR_{a}2{b}", None): (a, b) for a, b in pairs}
    return {code: pair for code, pair in found.items() if code is not None}


_CODES = _codes()


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for args, kwargs in colours.cvtColor.examples():
        if args[1] in _CODES:
            yield args, kwargs


@functools.wraps(colours.cvtColor.planner)
def _plan(src: Image, code: int, *args: Any, **kwargs: Any) -> Plan | None:
    plan = colours.cvtColor.planner(src, code, *args, **kwargs)
    pair = _CODES.get(int(code))
    if plan is None or pair is None or src.dtype != "uint8":
        return None
    source, target = pair
    is_gray = target == "GRAY"
    channels = 1 if is_gray else len(target)

    @functools.lru_cache(maxsize=16)
    def launch(pixels: int) -> Launch:
        grid = (-(-pixels // _BLOCK), 1, 1)
        if is_gray:
            shares = _SHARES if source.startswith("B") else _SHARES[::-1]
            constants: dict[str, Any] = {"CHANNELS": src.channels, "BLOCK": _BLOCK}
            return Launch(kernels.gray, grid, (pixels, *shares), constants, _WARPS)
        constants = {"FROM": src.channels, "TO": channels, "SWAPPED": source[0] != target[0]}
        return Launch(kernels.shuffle, grid, (pixels,), constants | {"BLOCK": _BLOCK}, _WARPS)

    def run(images: torch.Tensor) -> torch.Tensor:
        images = images.contiguous()
        shape = (*images.shape[:3], channels)
        found = torch.empty(shape, dtype=torch.uint8, device=images.device)
        with current(images.device):
            launch(images.numel() // src.channels)(images, found)
        return found

    return Plan(run)


cvtColor: Operation = Operation("cvtColor", "triton", _plan, colours.cvtColor.images, _examples)
