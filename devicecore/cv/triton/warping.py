"""`cv2.warpAffine` and `cv2.warpPerspective` by a kernel of Triton: bytes, where OpenCV fuses."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import torch

from devicecore.cv.arguments import constant, size
from devicecore.cv.environment import environment
from devicecore.cv.operation import Operation
from devicecore.cv.ops import warping
from devicecore.cv.plan import Plan
from devicecore.cv.tables.warping import source_matrix
from devicecore.cv.triton.kernels import warping as kernels
from devicecore.cv.triton.launching import Launch, current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image

_INTERPOLATION = 7  # the part of the flags that names it
_LINEAR = frozenset({cv2.INTER_LINEAR, cv2.INTER_AREA})
_BORDERS = frozenset({cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE})
_AT_ONCE = 16  # columns that OpenCV computes together
_BLOCK, _ROWS, _WARPS = 64, 4, 4


def _examples(known: Operation) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for args, kwargs in known.examples():
        yield args, kwargs
        yield (args[0][:, :, :1].copy() if args[0].ndim == 3 else args[0], *args[1:]), kwargs


def _operation(known: Operation, rows: int) -> Operation:
    @functools.wraps(known.planner)
    def planner(
        src: Image,
        M: Any,
        dsize: Any,
        dst: Any = None,
        flags: int = cv2.INTER_LINEAR,
        borderMode: int = cv2.BORDER_CONSTANT,
        borderValue: Any = None,
        hint: int = 0,
    ) -> Plan | None:
        plan = known.planner(src, M, dsize, dst, flags, borderMode, borderValue, hint)
        interpolation = flags & _INTERPOLATION
        is_nearest = interpolation == cv2.INTER_NEAREST
        if plan is None or src.dtype != "uint8" or borderMode not in _BORDERS:
            return None
        if not (environment().has_fma and (is_nearest or interpolation in _LINEAR)):
            return None
        wide, high = src.size if dsize is None else size(dsize)
        matrix = source_matrix(M, rows, is_inverse=bool(flags & cv2.WARP_INVERSE_MAP))
        numbers = [*matrix.ravel().tolist(), 0.0, 0.0, 1.0][:9]
        values = [*constant(borderValue, src.channels, src.dtype), 0.0, 0.0, 0.0][:4]
        rest = (
            *numbers,
            src.height,
            src.width,
            high,
            wide,
            wide - wide % _AT_ONCE,
            *map(float, values),
        )
        constants = {
            "PERSPECTIVE": rows == 3,
            "NEAREST": is_nearest,
            "REPEATS": borderMode == cv2.BORDER_REPLICATE,
            "CHANNELS": src.channels,
            "ROWS": _ROWS,
            "BLOCK": _BLOCK,
        }
        return Plan(_run(rest, constants, (high, wide, src.channels)))

    return Operation(
        known.name, "triton", planner, known.images, functools.partial(_examples, known)
    )


def _run(
    rest: tuple[Any, ...], constants: dict[str, Any], shape: tuple[int, int, int]
) -> Callable[[torch.Tensor], torch.Tensor]:
    height, width, _ = shape

    @functools.lru_cache(maxsize=16)
    def launch(count: int) -> Launch:
        grid = (-(-width // _BLOCK), -(-height // _ROWS), count)
        return Launch(kernels.warp, grid, rest, constants, _WARPS)

    def run(images: torch.Tensor) -> torch.Tensor:
        images = images.contiguous()
        count = images.shape[0]
        found = torch.empty((count, *shape), dtype=torch.uint8, device=images.device)
        with current(images.device):
            launch(count)(images, found)
        return found

    return run


warpAffine: Operation = _operation(warping.warpAffine, 2)
warpPerspective: Operation = _operation(warping.warpPerspective, 3)
