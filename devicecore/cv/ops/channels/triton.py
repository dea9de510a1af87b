"""`cv2.split`, `cv2.merge` and `cv2.extractChannel` of uint8 by Triton kernels."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops.channels import kernels
from devicecore.cv.ops.channels import torch as channels_torch
from devicecore.cv.ops.color.triton import Conversion, plan_conversion
from devicecore.cv.plan import Plan
from devicecore.cv.triton_support.alignment import groups, readable, writable
from devicecore.cv.triton_support.launch import Launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from devicecore.cv.image import Image

_BLOCK, _WARPS = 128, 4
_MOST_CHANNELS = 4


def _images() -> Iterator[np.ndarray[Any, Any]]:
    chance = np.random.default_rng(4)
    for count in (2, 3, 4):
        yield chance.integers(0, 256, (3, 7, count), np.uint8)


def _splits() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for image in _images():
        yield (image,), {}


def _merges() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for image in _images():
        yield ([np.ascontiguousarray(plane) for plane in np.moveaxis(image, 2, 0)],), {}


def _extractions() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for image in _images():
        yield (image, 1), {}


@functools.wraps(channels_torch.split.planner)
def _split(m: Image, mv: Any = None) -> Plan | None:
    if channels_torch.split.planner(m, mv) is None or not _fits(m):
        return None
    launch = _launches(kernels.split, m.channels)

    def run(images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        shape = (*images.shape[:3], 1)
        planes = [writable(shape, images.device) for _ in range(m.channels)]
        targets = [memory for memory, _ in planes]
        launch(targets[0].numel() // 4)(readable(images), *_four(targets))
        return tuple(result for _, result in planes)

    return Plan(run)


@functools.wraps(channels_torch.merge.planner)
def _merge(mv: Sequence[Image], dst: Any = None) -> Plan | None:
    if channels_torch.merge.planner(mv, dst) is None or not 1 < len(mv) <= _MOST_CHANNELS:
        return None
    if any(each.channels != 1 or each.dtype != "uint8" for each in mv):
        return None
    launch = _launches(kernels.merge, len(mv))

    def run(*planes: torch.Tensor) -> torch.Tensor:
        shape = (*planes[0].shape[:3], len(planes))
        memory, result = writable(shape, planes[0].device)
        sources = _four([readable(each.expand(planes[0].shape)) for each in planes])
        launch(groups(result.numel() // len(planes)))(*sources, memory)
        return result

    return Plan(run)


@functools.wraps(channels_torch.extractChannel.planner)
def _extract(src: Image, coi: int, dst: Any = None) -> Plan | None:
    if channels_torch.extractChannel.planner(src, coi, dst) is None or not _fits(src):
        return None
    return plan_conversion(Conversion("", read=(coi,) * 3), src, (0,))


def _fits(image: Image) -> bool:
    return image.dtype == "uint8" and 1 < image.channels <= _MOST_CHANNELS


def _four(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return four tensors, of which those that are missing are another one, never looked at."""
    return [*tensors, *tensors[:1] * (_MOST_CHANNELS - len(tensors))]


def _launches(kernel: Any, count: int) -> Any:
    @functools.lru_cache(maxsize=16)
    def launch(groups: int) -> Launch:
        constants = {"CHANNELS": count, "BLOCK": _BLOCK}
        return Launch(kernel, (-(-groups // _BLOCK), 1, 1), (groups,), constants, _WARPS)

    return launch


split: Operation = Operation("split", "triton", _split, ("m",), _splits)
merge: Operation = Operation("merge", "triton", _merge, ("mv",), _merges)
extractChannel: Operation = Operation("extractChannel", "triton", _extract, ("src",), _extractions)
