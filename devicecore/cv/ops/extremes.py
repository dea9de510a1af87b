"""`cv2.minMaxLoc` on tensors of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.ops.operands import SMALL_INTEGERS
from devicecore.cv.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

# The promise for each type. Where there are values that are not numbers, OpenCV's answer depends
# on their places and on the processor; of others it is the same one.
PROMISES: Mapping[str, Exactness] = {
    **dict.fromkeys((*SMALL_INTEGERS, "int32"), "exact"),
    "float32": "close",
    "float64": "close",
}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(17)
    for dtype in sorted(PROMISES):
        for spread in (3, 120):
            yield (chance.integers(0, spread, (13, 19)).astype(dtype),), {}


@operation("src", examples=examples)
def minMaxLoc(src: Image, mask: Any = None) -> Plan | None:
    """Plan one call of ``cv2.minMaxLoc`` of whole planes."""
    promise = PROMISES.get(src.dtype)
    if promise is None or mask is not None or src.channels != 1:
        return None

    def run(images: Tensor) -> tuple[Tensor, ...]:
        plain = images.to(torch.int32) if images.dtype is torch.uint16 else images
        flat = plain.reshape(len(images), src.pixels)
        least, most = flat.amin(1, keepdim=True), flat.amax(1, keepdim=True)
        first, last = (_first_place(flat == each, src.width) for each in (least, most))
        return least[:, 0].double(), most[:, 0].double(), first, last

    return Plan(run, promise, _finished)


def _first_place(found: Tensor, width: int) -> Tensor:
    """Return the column and the row of the first of some pixels in each image."""
    count = found.shape[1]
    order = torch.arange(count, device=found.device)
    place = torch.where(found, order, count).amin(1)
    return torch.stack((place % width, place // width), 1)


def _finished(found: Any) -> Any:
    least, most, first, last = found
    return float(least), float(most), tuple(first.tolist()), tuple(last.tolist())
