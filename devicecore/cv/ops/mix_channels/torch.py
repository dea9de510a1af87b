"""`cv2.mixChannels` on torch tensors: copies channels between images."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like
from devicecore.cv.torch_support.dtypes import MOVABLE, unsigned_as_signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    picture = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    plane = np.ascontiguousarray(picture[..., 0])
    yield ([picture, plane], [picture + 1, plane + 1], [0, 2, 3, 0, 1, 1, -1, 3]), {}
    yield ([picture.astype(np.float32)], [plane.astype(np.float32)], (2, 0)), {}


def _like_dst(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return tuple(map(like, given["dst"]))


@operation("src", "dst", examples=_examples, result=_like_dst)
def mixChannels(src: Sequence[Image], dst: Sequence[Image], fromTo: Any) -> Plan | None:
    """Plan one call of ``cv2.mixChannels``; whoever calls kernels writes the results into dst."""
    if not all(isinstance(each, (list, tuple)) for each in (src, dst)):
        return None
    images = [*src, *dst]
    if len({(each.size, each.dtype) for each in images}) != 1 or images[0].dtype not in MOVABLE:
        return None
    numbers = [whole(each) for each in fromTo]
    if not numbers or len(numbers) % 2:
        return None
    read, written = _channels(src), _channels(dst)
    steps = list(zip(numbers[::2], numbers[1::2], strict=True))
    if not all(source < len(read) and 0 <= to < len(written) for source, to in steps):
        return None

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        sources = [unsigned_as_signed(each) for each in tensors[: len(src)]]
        result = [each.clone(memory_format=torch.contiguous_format) for each in tensors[len(src) :]]
        targets = [unsigned_as_signed(each) for each in result]
        for source, to in steps:
            image, channel = written[to]
            if source < 0:  # a channel of zeros
                targets[image][..., channel] = 0
            else:
                one, place = read[source]
                targets[image][..., channel] = sources[one][..., place]
        return tuple(result)

    return Plan(run)


def _channels(images: Sequence[Image]) -> list[tuple[int, int]]:
    """Return for each channel of several images which image has it, and where."""
    return list(
        itertools.chain.from_iterable(
            ((index, channel) for channel in range(image.channels))
            for index, image in enumerate(images)
        )
    )
