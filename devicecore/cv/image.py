"""`Image`: what is known of an image without its pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence


@frozen
class Image:
    """The size and the type of an image, of a plane, or of an array beside them.

    Attributes:
        height: Rows.
        width: Columns.
        channels: Values of one pixel.
        dtype: The type of one value, as numpy and torch call it.
        has_channels: Whether there is an axis for them.
    """

    height: int
    width: int
    channels: int
    dtype: str
    has_channels: bool = True

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in OpenCV's order."""
        return self.width, self.height

    @property
    def pixels(self) -> int:
        """How many there are."""
        return self.width * self.height


def image_of(shape: Sequence[int], dtype: Any) -> Image:
    """Return what an array of two or three axes is.

    Raises:
        ValueError: It has other axes.
    """
    kind = str(dtype).removeprefix("torch.")
    if len(shape) == 2:
        return Image(shape[0], shape[1], 1, kind, has_channels=False)
    height, width, channels = shape
    return Image(height, width, channels, kind)
