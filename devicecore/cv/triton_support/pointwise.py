"""Elementwise functions of uint8 images by Triton kernels.

What a call means, and whether it can be computed, is what torch's kernel of the same function says.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from attrs import evolve

from devicecore.cv import catalog
from devicecore.cv.environment import environment
from devicecore.cv.operation import Operation
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.triton_support.alignment import groups, is_native
from devicecore.cv.triton_support.kernels import pointwise as kernels
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from devicecore.cv.image import Image

_BLOCK, _WORDS, _WARPS = 4096, 1024, 8
_BYTES = 256
# With larger ones, products might not fit into 32 bits, which OpenCV makes 0.
_LARGEST_SCALE = 1 << 14
# Whole numbers below it are counted by the last bits of float32.
_LARGEST_COUNTED = 1 << 21
_MOST = 255
_AUTOMATIC = cv2.THRESH_OTSU | cv2.THRESH_TRIANGLE


def _of_torch(name: str) -> Operation:
    operation = catalog.find(name, "torch")
    assert operation is not None
    return operation


def _bytes_only(
    examples: Callable[[], Iterable[tuple[tuple[Any, ...], dict[str, Any]]]],
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for args, kwargs in examples():
        if args[0].dtype == np.uint8:
            yield args, kwargs


def _operation(name: str, planner: Callable[..., Plan | None]) -> Operation:
    """Return the operation of Triton's kernel, with the parameters of torch's."""
    known = _of_torch(name)
    wrapped = functools.wraps(known.planner)(planner)
    return Operation(
        name, "triton", wrapped, known.images, functools.partial(_bytes_only, known.examples)
    )


def lookup_operation(name: str) -> Operation:
    """Return an operation that reads a table of what torch's kernel makes of the 256 bytes."""
    known = _of_torch(name)

    def planner(src: Image, *args: Any, **kwargs: Any) -> Plan | None:
        plan = known.planner(src, *args, **kwargs)
        if plan is None or src.dtype != "uint8":
            return None
        given = dict(zip(known.parameters[1:], args, strict=False)) | kwargs
        if given.get("mask") is not None or given.get("type", 0) & _AUTOMATIC:
            return None  # other pixels decide, too
        every = torch.arange(_BYTES, dtype=torch.uint8)
        made = plan.run(every.view(1, _BYTES, 1, 1).expand(1, _BYTES, 1, src.channels))
        number, columns = made if isinstance(made, tuple) else (None, made)
        found = _lookup_plan(src, columns[0, :, 0].t().contiguous())
        if number is not None:
            found = _beside(number, found)
        return evolve(found, promise=plan.promise, finish=plan.finish)

    return _operation(name, planner)


def _lookup_plan(src: Image, table: torch.Tensor) -> Plan:
    """Return how bytes are looked up in a table with a row for each channel."""
    is_one = bool((table == table[0]).all())

    def launch(images: int, device: torch.device) -> Launch:
        own = (table[:1] if is_one else table).to(device)
        count = images * src.pixels * src.channels
        constants = {"CHANNELS": 1 if is_one else src.channels, "BLOCK": _BLOCK}
        grid = (-(-count // _BLOCK), 1, 1)
        return Launch(kernels.look_up, grid, (own, count), constants, _WARPS)

    shape = (src.height, src.width, src.channels)
    return plan_launch(src, shape, launch, dtype=table.dtype, alignment=1, in_groups=False)


def _beside(number: torch.Tensor, plan: Plan) -> Plan:
    """Return a plan whose results are a number, the same for all images, and those of *plan*."""
    kept = Table(number[0])

    def run(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return kept.on(images).repeat(images.shape[0]), plan.run(images)

    def quick(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        result = plan.quick(image) if plan.quick else None
        # The caller may write into it.
        return None if result is None else (kept.on(image).clone(), result)

    return Plan(run, quick=quick)


def binary_operation(name: str, *scales: str) -> Operation:
    """Return an operation of two images of bytes.

    Args:
        name: OpenCV's name of it.
        scales: Its parameters that are numbers.
    """
    known = _of_torch(name)

    def planner(*args: Any, **kwargs: Any) -> Plan | None:
        plan = known.planner(*args, **kwargs)
        given = dict(zip(known.parameters, args, strict=False)) | kwargs
        first, second = given["src1"], given["src2"]
        if plan is None or first.dtype != "uint8" or first != second:
            return None
        if given.get("dtype", -1) not in {-1, 0} or given.get("mask") is not None:
            return None
        if name == "addWeighted" and not environment().has_fma:
            return None
        numbers = [float(np.float32(given.get(each, 1))) for each in scales]
        if not all(abs(each) < _LARGEST_SCALE for each in numbers):
            return None
        is_float = bool(scales)
        is_small = _largest(name, numbers) < _LARGEST_COUNTED
        weights = [*numbers, 0.0, 0.0, 0.0][:3]

        def launch(count: int, device: torch.device) -> Launch:
            constants = {
                "OPERATION": name,
                "IS_FLOAT": is_float,
                "IS_SMALL": is_small,
                "NATIVE": is_float and is_native(device),
                "BLOCK": _WORDS,
            }
            words = groups(count * first.pixels) * first.channels
            grid = (-(-words // _WORDS), 1, 1)
            return Launch(kernels.combine, grid, (words, *weights), constants, _WARPS)

        shape = (first.height, first.width, first.channels)
        return plan_launch(first, shape, launch, promise=plan.promise)

    return _operation(name, planner)


def _largest(name: str, numbers: list[float]) -> float:
    """Return what no result of bytes exceeds by these scales."""
    if name == "addWeighted":
        alpha, beta, gamma = map(abs, numbers)
        return (alpha + beta) * _MOST + gamma
    return abs(numbers[0]) * _MOST * (_MOST if name == "multiply" else 1) if numbers else _MOST
