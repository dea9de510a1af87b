"""`cv2.split`, `cv2.merge`, `cv2.extractChannel` and `cv2.insertChannel` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.image import Place
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like
from devicecore.cv.torch_support.dtypes import MOVABLE, unsigned_as_signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

_MOST_CHANNELS = 128


def _image() -> np.ndarray[Any, Any]:
    return np.arange(60, dtype=np.uint8).reshape(4, 5, 3)


def _splits() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (_image(),), {}
    yield (_image()[..., 0].astype(np.uint16),), {}


def _merges() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    plane = np.ascontiguousarray(_image()[..., 0])
    yield ([plane, plane + 1, plane + 2],), {}
    yield ([plane.astype(np.uint16)],), {}


def _extractions() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (_image(), 1), {}
    yield (_image().astype(np.uint16), 2), {}


def _insertions() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (np.ascontiguousarray(_image()[..., 0]), _image() + 1, 2), {}


def _planes(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    image: Image = given["m"]
    return (like(image, channels=1),) * image.channels


def _merged(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["mv"][0], channels=sum(each.channels for each in given["mv"])),)


def _plane(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["src"], channels=1),)


def _like_dst(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["dst"]),)


@operation("m", examples=_splits, result=_planes)
def split(m: Image, mv: Any = None) -> Plan | None:
    """Plan one call of ``cv2.split``; whoever calls kernels fills the planes of *mv*."""
    if not _can_move(m) or isinstance(mv, Place):  # of one array, OpenCV fills the parts
        return None
    if any(place.is_operand for place in mv or ()):
        return None
    return Plan(
        lambda images: tuple(
            _copied(images[..., place : place + 1]) for place in range(images.shape[-1])
        )
    )


@operation("mv", examples=_merges, result=_merged)
def merge(
    mv: Sequence[Image],
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.merge``."""
    if not isinstance(mv, (list, tuple)) or not all(map(_can_move, mv)):
        return None
    if len({(each.size, each.dtype) for each in mv}) != 1:
        return None
    if sum(each.channels for each in mv) > _MOST_CHANNELS:
        return None

    def run(*images: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([unsigned_as_signed(each) for each in images], -1)
        return joined.view(images[0].dtype)

    return Plan(run)


@operation("src", examples=_extractions, result=_plane)
def extractChannel(
    src: Image,
    coi: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.extractChannel``."""
    place = whole(coi)
    if not _can_move(src) or not 0 <= place < src.channels:
        return None
    return Plan(lambda images: _copied(images[..., place : place + 1]))


@operation("src", "dst", examples=_insertions, result=_like_dst)
def insertChannel(src: Image, dst: Image, coi: int) -> Plan | None:
    """Plan one call of ``cv2.insertChannel``; whoever calls kernels writes the result into dst."""
    place = whole(coi)
    if not (_can_move(src) and _can_move(dst)) or not 0 <= place < dst.channels:
        return None
    # A plane with an axis for its channel would come back without it, so not into dst.
    if src.channels != 1 or src.size != dst.size or src.dtype != dst.dtype or dst.channels == 1:
        return None

    def run(plane: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
        result = _copied(images)
        unsigned_as_signed(result)[..., place] = unsigned_as_signed(plane)[..., 0]
        return result

    return Plan(run)


def _can_move(image: Image) -> bool:
    return image.dtype in MOVABLE and bool(image.pixels)


def _copied(images: torch.Tensor) -> torch.Tensor:
    return images.clone(memory_format=torch.contiguous_format)
