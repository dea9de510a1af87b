"""`cv2.GaussianBlur` by Triton kernels: bytes, in one step or along rows and then columns."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import cv2
import torch

from devicecore.cv.operation import Operation
from devicecore.cv.ops.gaussian_blur import kernels
from devicecore.cv.ops.gaussian_blur import torch as gaussian_blur_torch
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.windows import window
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch
from devicecore.cv.triton_support.strips import example, fits, strips
from devicecore.cv.triton_support.weighted_sums import BORDERS, plan_weighted_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.cv.image import Image


BLOCK, ROWS = 512, 16
# Weights of blurs that are done in one pass, and registers that these may keep.
FUSED, FUSED_VALUES = 11, 80
_WARPS = 4
_WIDEST = 31
_SCALE = 2.0**-16


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for channels, size, sigma in (
        (3, (5, 5), 0),
        (1, (3, 3), 0),
        (3, (11, 5), 2.5),
        (1, (13, 13), 3),
    ):
        yield (example(channels), size, sigma), {}
    yield (example(4), (0, 0), 0.9), {"borderType": cv2.BORDER_REPLICATE}


@functools.wraps(gaussian_blur_torch.GaussianBlur.planner)
def _plan(
    src: Image,
    ksize: Any,
    sigmaX: float,
    dst: Any = None,
    sigmaY: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
    hint: int = 0,
) -> Plan | None:
    known = gaussian_blur_torch.GaussianBlur.planner(
        src, ksize, sigmaX, dst, sigmaY, borderType, hint
    )
    if known is None or not fits(src) or borderType not in BORDERS:
        return None
    weights = gaussian_blur_torch.gaussian_weights(src, ksize, (sigmaX, sigmaY), borderType)
    if weights is None or max(map(len, weights)) == 1 or max(map(len, weights)) > _WIDEST:
        return None
    if any(len(taps) // 2 >= length for taps, length in zip(weights, src.size, strict=True)):
        return None
    return _at_once(src, *weights, borderType) or _by_weights(src, *weights, borderType)


def _at_once(src: Image, across: Sequence[int], down: Sequence[int], border: int) -> Plan | None:
    """Return a blur by weights that are small enough after all are divided by what divides all."""
    shared = math.gcd(*across), math.gcd(*down)
    across, down = (
        [tap // by for tap in taps] for taps, by in zip((across, down), shared, strict=True)
    )
    bits = (sum(across) * sum(down)).bit_length() - 1
    area = window((len(across), len(down)))
    finish = "shift", bits, 1 << (bits - 1)
    return plan_weighted_sums(src, [across] * len(down), down, area, border, finish)


def _by_weights(src: Image, across: Sequence[int], down: Sequence[int], border: int) -> Plan:
    """Return a blur by weights that kernels load: with few of them, rows are kept in registers."""
    if max(len(across), len(down)) > FUSED:
        return _in_turn(src, across, down, border)
    side = len(across) // 2 * src.channels

    def weights(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        return _half(across, device), _half(down, device) * _SCALE

    constants = {"SETTINGS": (len(across), len(down)), "BORDER": border, "TOP": len(down) // 2}
    sides, tall = (side, side), len(down)
    return strips(kernels.blur, src, sides, tall, constants, weights, values=4, kept=FUSED_VALUES)


def _half(weights: Sequence[int], device: torch.device) -> torch.Tensor:
    """Return weights from the one in the middle on."""
    return torch.tensor(weights[len(weights) // 2 :], dtype=torch.int32, device=device)


def _in_turn(src: Image, across: Sequence[int], down: Sequence[int], border: int) -> Plan:
    """Return a blur along rows, whose sums have 16 bits, and then along columns."""
    side = len(across) // 2 * src.channels
    along_rows = strips(
        kernels.blur_rows,
        src,
        (side, side),
        1,
        {"SETTINGS": (len(across),), "BORDER": border, "TOP": 0},
        lambda device: (_half(across, device),),
        dtype=torch.int16,
    )

    def launch(count: int, device: torch.device) -> Launch:
        length = src.width * src.channels
        weights = torch.tensor(down, dtype=torch.float32, device=device) * _SCALE
        constants = {"TAPS": len(down), "BORDER": border, "ROWS": ROWS, "BLOCK": BLOCK}
        grid = (-(-length // BLOCK), -(-src.height // ROWS), count)
        return Launch(kernels.blur_columns, grid, (src.height, length, weights), constants, _WARPS)

    shape = (src.height, src.width, src.channels)
    along_columns = plan_launch(src, shape, launch, in_groups=False)
    return Plan(lambda images: along_columns.run(along_rows.run(images)))


GaussianBlur: Operation = Operation("GaussianBlur", "triton", _plan, ("src",), _examples)
