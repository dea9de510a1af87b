"""Reads images at places given in float32, as OpenCV's warps do since version 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import torch
from attrs import frozen

from devicecore.cv.arguments import constant
from devicecore.cv.environment import environment
from devicecore.cv.ops.fusing import fused
from devicecore.cv.ops.numbers import fma, saturated, unsigned_as_signed
from devicecore.cv.ops.padding import padded
from devicecore.cv.tables.borders import BORDERS, repeated

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# Others go through OpenCV's older tables of 1/32 pixel.
DTYPES = frozenset({"uint8", "uint16", "float32"})
CHANNELS = frozenset({1, 3, 4})
LARGEST = 32766  # rows or columns
_FLAGS = {cv2.INTER_NEAREST: False, cv2.INTER_LINEAR: True, cv2.INTER_AREA: True}
# Places that do not fit into 32 bits are outside, before the first pixel.
_UNCOUNTABLE = float(1 << 31)
_OUTSIDE = -2.0


@frozen
class Sampler:
    """How places between the pixels of images are read.

    Attributes:
        is_linear: Whether four pixels are mixed; otherwise the nearest one is taken.
        border: One of `BORDERS`.
        values: The constant border's, for each channel.
        is_fused: Whether float arithmetic is fused.
    """

    is_linear: bool
    border: int
    values: tuple[float, ...]
    is_fused: bool

    @property
    def knows_uncountable(self) -> bool:
        """Whether what OpenCV makes of places that it cannot count to is known: the border."""
        has_value = self.is_linear and any(self.values)
        return self.border == cv2.BORDER_CONSTANT and not has_value

    def read(self, images: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return what *images* have at places.

        Args:
            images: Of shape (images, height, width, channels).
            x: The columns, of shape (images or 1, rows, columns) and type float32.
            y: The rows.
        """
        x, y = _countable(x), _countable(y)
        if self.border == cv2.BORDER_CONSTANT:  # one pixel of it is enough on each side
            images = padded(images, 1, 1, 1, 1, self.border, self.values)
        if not self.is_linear:
            return self._taps(images, x.round(), y.round(), (0,), (0,))[0]
        left, top = x.floor(), y.floor()
        across, down = (x - left)[..., None], (y - top)[..., None]
        mixed = self._multiply_add(images.dtype)
        taps = [tap.to(torch.float32) for tap in self._taps(images, left, top, (0, 1), (0, 1))]
        upper = mixed(across, taps[1] - taps[0], taps[0])
        lower = mixed(across, taps[3] - taps[2], taps[2])
        return saturated(mixed(down, lower - upper, upper), images.dtype)

    def _multiply_add(self, dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        """Return the product of two tensors of float32 and the sum with a third, as OpenCV has it.

        Args:
            dtype: The images' type. What the quicker emulation may lose is lost again by rounding
                to integers.
        """
        if not self.is_fused:
            return unfused
        return fused if dtype.is_floating_point else fma

    def _taps(
        self,
        images: Tensor,
        column: Tensor,
        row: Tensor,
        beside: tuple[int, ...],
        below: tuple[int, ...],
    ) -> list[Tensor]:
        """Return the pixels at whole places and beside them, row by row."""
        count, height, width, channels = images.shape
        pixels = unsigned_as_signed(images).reshape(count, height * width, channels)
        columns = [self._inside(column, step, width) for step in beside]
        rows = [self._inside(row, step, height) * width for step in below]
        found = []
        for start in rows:
            for place in columns:
                index = (start + place).flatten(1)
                if len(index) == 1:
                    taken = pixels.index_select(1, index[0])
                else:
                    taken = pixels.gather(1, index[..., None].expand(-1, -1, channels))
                shape = (count, *column.shape[1:], channels)
                found.append(taken.view(images.dtype).view(shape))
        return found

    def _inside(self, place: Tensor, step: int, length: int) -> Tensor:
        """Return the pixels of an axis, which has the constant border in it, at whole places."""
        if self.border == cv2.BORDER_CONSTANT:
            return (place + (step + 1)).clamp(0, length - 1).long()
        found: Tensor = repeated(place.long() + step, length, self.border)
        return found


def unfused(a: Tensor, b: Tensor | float, c: Tensor | float) -> Tensor:
    """Return ``a * b + c`` of float32, rounded twice, as without AVX2."""
    return a * b + c


def _countable(places: Tensor) -> Tensor:
    return torch.where(places.abs() < _UNCOUNTABLE, places, _OUTSIDE)


def sampler(src: Image, flags: int, border: int, value: Any) -> Sampler | None:
    """Return how a call reads its images, or None where that is not known.

    Args:
        src: The image.
        flags: OpenCV's number of the interpolation.
        border: OpenCV's number of the border.
        value: The constant border's value.
    """
    here = environment()
    if not (here.has_float_warps and here.is_x86 and flags in _FLAGS and border in BORDERS):
        return None
    if src.dtype not in DTYPES or src.channels not in CHANNELS:
        return None
    if not 0 < max(src.size) <= LARGEST or not src.pixels:
        return None
    values = constant(value, src.channels, src.dtype)
    return Sampler(_FLAGS[flags], border, values, here.has_fma)
