"""Samples images at float32 coordinates, as OpenCV's warps do since version 5."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import torch
from attrs import frozen

from devicecore.cv.arguments import constant
from devicecore.cv.border_index import BORDERS, border_pixels
from devicecore.cv.environment import environment
from devicecore.cv.torch_support.dtypes import fma, saturate, unsigned_as_signed
from devicecore.cv.torch_support.error_free import multiplied_and_added
from devicecore.cv.torch_support.fma import fused_multiply_add, multiply_then_add
from devicecore.cv.torch_support.padding import pad_images

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from devicecore.cv.image import Image
    from devicecore.cv.torch_support.fma import MultiplyAdd

    Tensor = torch.Tensor

# Others go through OpenCV's older tables of 1/32 pixel.
DTYPES = frozenset({"uint8", "uint16", "float32"})
# OpenCV computes as many columns at once, with or without AVX2, and the rest one by one.
AT_ONCE = {True: 16, False: 8}
CHANNELS = frozenset({1, 3, 4})
LARGEST = 32766  # rows or columns
PARTS = 32  # of a pixel, where places are in fixed point
_FLAGS = {
    cv2.INTER_NEAREST: cv2.INTER_NEAREST,
    cv2.INTER_LINEAR: cv2.INTER_LINEAR,
    cv2.INTER_AREA: cv2.INTER_LINEAR,
    cv2.INTER_CUBIC: cv2.INTER_CUBIC,
}
# Places that do not fit into 32 bits are outside, before the first pixel.
_UNCOUNTABLE = float(1 << 31)
_OUTSIDE = -2.0
# Of the kernel of 16 pixels: its parameter, and the least length that outside is measured by.
_A, _SHORTEST = -0.75, 16


@frozen
class Sampler:
    """How places between the pixels of images are read.

    Attributes:
        interpolation: ``cv2.INTER_NEAREST``, ``cv2.INTER_LINEAR`` or ``cv2.INTER_CUBIC``.
        border: One of `BORDERS`.
        values: The constant border's, for each channel.
        is_fused: Whether float arithmetic is fused.
        has_float64: Whether the device of the images has float64.
    """

    interpolation: int
    border: int
    values: tuple[float, ...]
    is_fused: bool
    has_float64: bool = True

    @property
    def is_cubic(self) -> bool:
        """Whether it is the kernel of 16 pixels, which has ways of its own."""
        return self.interpolation == cv2.INTER_CUBIC

    @property
    def knows_uncountable(self) -> bool:
        """Whether what OpenCV makes of places that it cannot count to is known: the border."""
        has_value = self.interpolation != cv2.INTER_NEAREST and any(self.values)
        return self.border == cv2.BORDER_CONSTANT and not has_value

    def read(self, images: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return what *images* have at places.

        Args:
            images: Of shape (images, height, width, channels).
            x: The columns, of shape (images or 1, rows, columns) and type float32.
            y: The rows.
        """
        _, height, width, _ = images.shape
        places = (x, y)
        if self.is_cubic:
            x, y = _near(x, width), _near(y, height)
        else:
            x, y = _countable(x), _countable(y)
        if self.border == cv2.BORDER_CONSTANT:  # one pixel of it is enough on each side
            images = pad_images(images, 1, 1, 1, 1, self.border, self.values)
        if self.interpolation == cv2.INTER_NEAREST:
            return self._row(images, x.round(), y.round(), (0,))[0]
        left, top = x.floor(), y.floor()
        mixed = self._cubic if self.is_cubic else self._linear
        result = saturate(mixed(images, left, top, x - left, y - top), images.dtype)
        if self.border == cv2.BORDER_CONSTANT and result.is_floating_point() and not self.is_cubic:
            inside = (left >= -1) & (left < width) & (top >= -1) & (top < height)
            return result.masked_fill_(self._has_no_number(*places, inside)[..., None], math.nan)
        return result

    def _has_no_number(self, x: Tensor, y: Tensor, inside: Tensor) -> Tensor:
        """Return where OpenCV mixes with shares of infinite places, which are no numbers.

        It does so only among as many columns as it computes at once, and only if any of them is
        not *inside* the border alone.
        """
        at_once = AT_ONCE[self.is_fused]
        blocks = inside.shape[-1] // at_once
        whole = inside[..., : blocks * at_once].reshape(*inside.shape[:-1], blocks, at_once)
        mixed = torch.zeros_like(inside)
        mixed[..., : blocks * at_once] = whole.any(-1, keepdim=True).expand_as(whole).flatten(-2)
        return mixed & ~(x.isfinite() & y.isfinite())

    def read_parts(self, images: Tensor, left: Tensor, top: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Return what images of bytes have between the pixels, in OpenCV's fixed point.

        Args:
            images: Of shape (images, height, width, channels).
            left: The columns left of the places, of shape (images or 1, rows, columns), int32.
            top: The rows above them.
            x: How far right of these columns they are, in parts of `PARTS`.
            y: How far below the rows.
        """
        if self.border == cv2.BORDER_CONSTANT:
            images = pad_images(images, 1, 1, 1, 1, self.border, self.values)
        total: Any = 0
        for row, share in ((top, PARTS - y), (top + 1, y)):
            first, second = self._row(images, left, row, (0, 1))
            both = first * (PARTS - x)[..., None] + second * x[..., None]
            total = total + both * share[..., None]
        result: Tensor = (total + PARTS * PARTS // 2) // (PARTS * PARTS)
        return result.to(images.dtype)

    def _linear(self, images: Tensor, left: Tensor, top: Tensor, x: Tensor, y: Tensor) -> Tensor:
        x, y, add = x[..., None], y[..., None], self._multiply_add(images.dtype)
        rows = []
        for place in (top, top + 1):
            first, second = map(torch.Tensor.float, self._row(images, left, place, (0, 1)))
            rows.append(add(x, second - first, first))
        upper, lower = rows
        return add(y, lower - upper, upper)

    def _cubic(self, images: Tensor, left: Tensor, top: Tensor, x: Tensor, y: Tensor) -> Tensor:
        add = self._multiply_add(images.dtype)
        across, down = self._cubic_weights(x), self._cubic_weights(y)
        total: Tensor | None = None
        for step, share in enumerate(down, -1):
            taps = self._row(images, left, top + step, (-1, 0, 1, 2))
            row = taps[0].float() * across[0]
            for tap, weight in zip(taps[1:], across[1:], strict=True):
                row = add(tap.float(), weight, row)
            total = row * share if total is None else add(row, share, total)
        assert total is not None  # there are four rows
        return total

    def _cubic_weights(self, x: Tensor) -> list[Tensor]:
        """Return the weights of four neighbours, in the order of OpenCV's operations."""
        add = self.multiply_add
        rest, square = 1 - x, x * x
        first = _A * (x * (rest * rest))
        second = add(square, add(x, _A + 2, -(_A + 3)), 1.0)
        last = _A * (square * rest)
        return [each[..., None] for each in (first, second, 1 - first - second - last, last)]

    def _multiply_add(self, dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        """Return the product of two tensors of float32 and the sum with a third, as OpenCV has it.

        Args:
            dtype: The images' type. What the quicker emulation may lose is lost again by rounding
                to integers.
        """
        if not self.is_fused:
            return multiply_then_add
        return fma if self.has_float64 and not dtype.is_floating_point else self.multiply_add

    @property
    def multiply_add(self) -> MultiplyAdd:
        """What computes ``a * b + c`` of float32, rounded once or twice as OpenCV does here."""
        if not self.is_fused:
            return multiply_then_add
        return fused_multiply_add if self.has_float64 else multiplied_and_added

    def _row(
        self, images: Tensor, column: Tensor, row: Tensor, steps: tuple[int, ...]
    ) -> list[Tensor]:
        """Return the pixels beside whole places, so many steps to the right."""
        count, height, width, channels = images.shape
        pixels = unsigned_as_signed(images).reshape(count, height * width, channels)
        start = self._inside(row, 0, height) * width
        result = []
        for step in steps:
            index = (start + self._inside(column, step, width)).flatten(1)
            if len(index) == 1:
                taken = pixels.index_select(1, index[0])
            else:
                taken = pixels.gather(1, index.long()[..., None].expand(-1, -1, channels))
            result.append(taken.view(images.dtype).view(count, *column.shape[1:], channels))
        return result

    def _inside(self, place: Tensor, step: int, length: int) -> Tensor:
        """Return the pixels of an axis, which has the constant border in it, at whole places."""
        if self.border == cv2.BORDER_CONSTANT:
            return (place + (step + 1)).clamp(0, length - 1).to(torch.int32)
        result: Tensor = border_pixels(place.to(torch.int32) + step, length, self.border)
        return result


def _countable(places: Tensor) -> Tensor:
    return torch.where(places.abs() < _UNCOUNTABLE, places, _OUTSIDE)


def _near(places: Tensor, length: int) -> Tensor:
    """Return places that are at most as far outside as the image is long, as OpenCV cuts them."""
    long = max(length, _SHORTEST)
    return places.nan_to_num(-long, 2 * long, -long).clamp(-long, 2 * long)


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
    result = Sampler(_FLAGS[flags], border, values, here.has_fma, src.has_float64)
    if result.is_cubic and src.dtype == "float32" and border == cv2.BORDER_CONSTANT and any(values):
        return None  # the border's last bit depends on the pixels that OpenCV computes at once
    return result
