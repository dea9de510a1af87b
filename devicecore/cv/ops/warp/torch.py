"""`cv2.warpAffine` and `cv2.warpPerspective` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.arguments import size, whole
from devicecore.cv.border_index import BORDERS
from devicecore.cv.operation import operation
from devicecore.cv.ops.warp.tables import is_bounded, source_matrix
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.torch_support.sampling import AT_ONCE, LARGEST, sampler

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.torch_support.sampling import Sampler

    Tensor = torch.Tensor

_INTERPOLATION = 7  # the part of the flags that names it
_ACCURATE = frozenset({0, 1})  # OpenCV's ALGO_HINT_DEFAULT and ALGO_HINT_ACCURATE


def _affine_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield from _examples(np.array([(0.9, -0.31, 3.7), (0.28, 1.1, -2.3)]))


def _perspective_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield from _examples(np.array([(0.9, -0.31, 3.7), (0.28, 1.1, -2.3), (0.004, -0.003, 1)]))


def _examples(matrix: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(5)
    image = chance.integers(0, 256, (14, 19, 3), np.uint8)
    wide = image[..., 0].astype(np.uint16) * 257
    linear, nearest, cubic = cv2.INTER_LINEAR, cv2.INTER_NEAREST, cv2.INTER_CUBIC
    for border in sorted(BORDERS):
        yield (image, matrix, (19, 9)), {"flags": linear, "borderMode": border}
    for flags in (nearest, cubic, linear | cv2.WARP_INVERSE_MAP):
        yield (image, matrix, (19, 9)), {"flags": flags}
    yield (wide, matrix, (35, 7)), {"flags": linear, "borderValue": 300}
    yield (image / np.float32(255), matrix, (35, 7)), {"flags": linear}


def _size(image: Image, given: Mapping[str, Any]) -> tuple[int, int]:
    width, height = given["dsize"] or (0, 0)
    return width or image.width, height or image.height


@operation("src", examples=_affine_examples, result=scaled_to(_size))
def warpAffine(
    src: Image,
    M: Any,
    dsize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    flags: int = cv2.INTER_LINEAR,
    borderMode: int = cv2.BORDER_CONSTANT,
    borderValue: Any = None,
    hint: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.warpAffine``."""
    return _warped(2, src, M, dsize, flags, borderMode, borderValue, hint)


@operation("src", examples=_perspective_examples, result=scaled_to(_size))
def warpPerspective(
    src: Image,
    M: Any,
    dsize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    flags: int = cv2.INTER_LINEAR,
    borderMode: int = cv2.BORDER_CONSTANT,
    borderValue: Any = None,
    hint: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.warpPerspective``."""
    return _warped(3, src, M, dsize, flags, borderMode, borderValue, hint)


def _warped(
    rows: int,
    src: Image,
    matrix: Any,
    dsize: Any,
    flags: int,
    border: int,
    value: Any,
    hint: int,
) -> Plan | None:
    width, height = src.size if dsize is None else size(dsize)
    read = sampler(src, whole(flags) & _INTERPOLATION, whole(border), value)
    if read is None or whole(hint) not in _ACCURATE or max(width, height) > LARGEST:
        return None
    is_inverse = bool(flags & cv2.WARP_INVERSE_MAP)
    to_source = source_matrix(matrix, rows, is_inverse=is_inverse)
    if not is_bounded(to_source, width, height) and not read.knows_uncountable:
        return None

    def run(images: Tensor) -> Tensor:
        if read.is_cubic:
            x, y = _plain_places(to_source, width, height, images.device, read)
        else:
            x, y = _places(to_source, width, height, images.device, read)
        return read.read(images, x, y)

    return Plan(run)


def _places(
    matrix: Any, width: int, height: int, device: torch.device, read: Sampler
) -> tuple[Tensor, Tensor]:
    """Return the columns and the rows that the pixels of a result have in the source."""
    across = torch.arange(width, dtype=torch.float32, device=device)
    down = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    at_once = width - width % AT_ONCE[read.is_fused]  # the rest is added up in another order
    add = read.multiply_add
    result = []
    for a, b, c in matrix.tolist():
        blocks = add(across[:at_once], a, down * b + c)
        rest = add(across[at_once:], a, down * b) + c
        result.append(torch.cat([blocks, rest], 1)[None])
    if len(result) == 2:
        return result[0], result[1]
    return result[0] / result[2], result[1] / result[2]


def _plain_places(
    matrix: Any, width: int, height: int, device: torch.device, read: Sampler
) -> tuple[Tensor, Tensor]:
    """Return the same for INTER_CUBIC, where nothing is fused, and a perspective is in float64."""
    if len(matrix) > 2 and not read.has_float64:
        return _perspective_on_host(matrix, width, height, device)
    across = torch.arange(width, dtype=torch.float32, device=device)
    down = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    terms = [(a, down * b + c) for a, b, c in matrix.tolist()]
    if len(terms) == 2:
        x, y = (start + across * a for a, start in terms)
    else:
        found = [start.double() + across.double() * a for a, start in terms]
        share = 1 / found[2]
        x, y = ((each * share).float() for each in found[:2])
    return x[None], y[None]


def _perspective_on_host(
    matrix: Any, width: int, height: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the same of a perspective, for a device that has no float64 for it."""
    across = np.arange(width, dtype=np.float32)
    down = np.arange(height, dtype=np.float32)[:, None]
    found = []
    for a, b, c in matrix.tolist():
        start = down * np.float32(b) + np.float32(c)
        found.append(start.astype(np.float64) + across.astype(np.float64) * a)
    with np.errstate(all="ignore"):  # places at infinity are for the border
        share = 1 / found[2]
        places = np.stack([(each * share).astype(np.float32) for each in found[:2]])
    x, y = torch.from_numpy(places).to(device)[:, None]
    return x, y
