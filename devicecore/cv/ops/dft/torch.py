"""`cv2.dft` and `cv2.idft` on torch tensors, complex or real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.native import original
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor

_TYPES = frozenset({"float32", "float64"})
_KNOWN = (
    cv2.DFT_INVERSE
    | cv2.DFT_SCALE
    | cv2.DFT_ROWS
    | cv2.DFT_COMPLEX_OUTPUT
    | cv2.DFT_REAL_OUTPUT
    | cv2.DFT_COMPLEX_INPUT
)


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.dft``."""
    yield from _examples(0)


def inverse_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.idft``."""
    yield from _examples(cv2.DFT_SCALE)


def _examples(more: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(41)
    for dtype in (np.float32, np.float64):
        numbers: Any = chance.random((12, 15)).astype(dtype)
        spectrum = original("dft")(numbers, flags=cv2.DFT_COMPLEX_OUTPUT)
        for flags in (0, cv2.DFT_ROWS):
            yield (spectrum,), {"flags": flags | more}
            yield (spectrum,), {"flags": flags | more | cv2.DFT_INVERSE}
        yield (numbers,), {"flags": cv2.DFT_COMPLEX_OUTPUT | more}
        yield (spectrum,), {"flags": cv2.DFT_INVERSE | cv2.DFT_REAL_OUTPUT | more}


def _spectrum(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    is_real = given["flags"] & cv2.DFT_REAL_OUTPUT
    return (like(given["src"], channels=1 if is_real else 2),)


@operation("src", examples=examples, result=_spectrum)
def dft(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    flags: int = 0,
    nonzeroRows: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.dft``, but for packed spectra of real numbers."""
    return _transform(src, whole(flags), whole(nonzeroRows))


@operation("src", examples=inverse_examples, result=_spectrum)
def idft(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    flags: int = 0,
    nonzeroRows: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.idft``, but for packed spectra of real numbers."""
    return _transform(src, whole(flags) | cv2.DFT_INVERSE, whole(nonzeroRows))


def _transform(src: Image, flags: int, rows: int) -> Plan | None:
    if src.dtype not in _TYPES or not src.pixels or flags & ~_KNOWN or rows:
        return None
    axes = (2,) if flags & cv2.DFT_ROWS else (1, 2)
    count = src.width if flags & cv2.DFT_ROWS else src.pixels
    compute = _computing(src, flags, axes)
    if compute is None:
        return None
    share = 1.0 / count if flags & cv2.DFT_SCALE else 1.0
    return Plan(lambda images: compute(images).mul_(share), "tolerance")


def _computing(src: Image, flags: int, axes: tuple[int, ...]) -> Callable[[Tensor], Tensor] | None:
    is_inverse, is_real = flags & cv2.DFT_INVERSE, flags & cv2.DFT_REAL_OUTPUT
    if src.channels == 1:
        if is_inverse or not flags & cv2.DFT_COMPLEX_OUTPUT or is_real:
            return None
        return lambda x: torch.view_as_real(torch.fft.fftn(x[..., 0], dim=axes)).contiguous()
    if src.channels != 2:
        return None
    if not is_real:
        function = torch.fft.ifftn if is_inverse else torch.fft.fftn
        norm = "forward" if is_inverse else "backward"
        return lambda x: torch.view_as_real(function(_complex(x), dim=axes, norm=norm)).contiguous()
    if not is_inverse:
        return None
    sizes = [(src.height, src.width)[axis - 1] for axis in axes]
    return lambda x: torch.fft.irfftn(
        _complex(x)[:, :, : src.width // 2 + 1], s=sizes, dim=axes, norm="forward"
    )[..., None]


def _complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.contiguous())
