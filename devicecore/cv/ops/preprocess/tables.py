"""Where a resized image lies in the network's input: stretched, letterboxed or cropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from attrs import frozen

from devicecore.cv.ops.resize import tables as resize_tables
from devicecore.cv.ops.resize.tables import Axis

if TYPE_CHECKING:
    from numpy.typing import NDArray

Mode = Literal["letterbox", "stretch", "crop"]
MODES: tuple[Mode, ...] = ("letterbox", "stretch", "crop")
_HALF = 0.1  # of an odd border, the smaller half goes before, as in the YOLO family


@frozen
class Span:
    """One axis of a placement.

    Attributes:
        resized: How long the image is after resizing.
        start: Where it starts on the canvas; negative where the canvas cuts it.
        length: How long the canvas is.
    """

    resized: int
    start: int
    length: int

    @property
    def covered(self) -> slice:
        """The part of the canvas that the image covers."""
        return slice(max(self.start, 0), min(self.start + self.resized, self.length))

    @property
    def seen(self) -> slice:
        """The part of the resized image that is on the canvas."""
        return slice(self.covered.start - self.start, self.covered.stop - self.start)


def spans(width: int, height: int, canvas: tuple[int, int], mode: Mode) -> tuple[Span, Span]:
    """Return how an image of one size is placed on a canvas: columns, then rows.

    Args:
        width: The image's.
        height: The image's.
        canvas: Width and height of the canvas.
        mode: ``"letterbox"`` keeps the shape and leaves a border, ``"crop"`` keeps the shape and
            cuts what is over from both sides, ``"stretch"`` fills the canvas.
    """
    if mode == "stretch":
        return Span(canvas[0], 0, canvas[0]), Span(canvas[1], 0, canvas[1])
    factors = canvas[0] / width, canvas[1] / height
    factor = min(factors) if mode == "letterbox" else max(factors)
    # At least a pixel, and for "crop" at least the canvas, whatever the rounding.
    least = (1, 1) if mode == "letterbox" else canvas
    resized = max(round(width * factor), least[0]), max(round(height * factor), least[1])
    return _span(resized[0], canvas[0]), _span(resized[1], canvas[1])


def _span(resized: int, length: int) -> Span:
    over = (length - resized) / 2
    start = round(over - _HALF) if over > 0 else -round(-over)
    return Span(resized, start, length)


def linear_columns(source: int, span: Span) -> NDArray[Any]:
    """Return what INTER_LINEAR reads for each column of a canvas, of shape (length, 3), int32.

    First the left one of two neighbouring pixels, or -1 outside of the image, then the two weights
    in 11 bits. Beside the last pixel, the neighbour has no weight.
    """
    axis = _axis(source, span)
    left, rest = resize_tables.clamp_positions(*resize_tables.center_positions(axis), axis)
    return _on_canvas(
        span, left[:, None], resize_tables.fixed_point(resize_tables.linear_pair(rest))
    )


def linear_rows(source: int, span: Span) -> NDArray[Any]:
    """Return what INTER_LINEAR reads for each row of a canvas, of shape (length, 4), int32.

    First the upper and the lower one of two rows, or -1 outside of the image, then the two weights.
    At the border both are the same row, and each is rounded by itself.
    """
    top, rest = resize_tables.center_positions(_axis(source, span))
    pair = np.stack([top, top + 1], axis=-1).clip(0, source - 1)
    return _on_canvas(span, pair, resize_tables.fixed_point(resize_tables.linear_pair(rest)))


def _axis(source: int, span: Span) -> Axis:
    return Axis(source, span.resized, span.resized / source)


def _on_canvas(span: Span, pixels: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    table = np.full((span.length, pixels.shape[1] + 2), -1, np.int32)
    table[span.covered] = np.concatenate([pixels, weights], axis=1)[span.seen]
    return table
