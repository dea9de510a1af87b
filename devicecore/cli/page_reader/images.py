"""Image files: any kind in, one kind of array out, and one line about what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from devicecore.errors import DeviceCoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from devicecore.device import Device

    Pixels = NDArray[np.uint8]

_BYTE = 255
_WORD_PER_BYTE = 257  # 65535 / 255
_HALF = 128
_BOX_COLOUR = (255, 0, 0)


class ImageError(DeviceCoreError, ValueError):
    """An image file cannot be read or written.

    Attributes:
        path: The file.
        reason: Why.
        fix: What to do.
    """

    def __init__(self, path: str, reason: str, fix: str = "") -> None:
        self.path = path
        self.reason = reason
        self.fix = fix
        super().__init__(path, reason, fix)

    def _parts(self) -> tuple[str, ...]:
        return (f"the image {self.path!r} cannot be used: {self.reason}", self.fix)


def load_image(path: Path) -> Pixels:
    """Return the image in *path* as it is seen.

    It is turned as its EXIF entry says; what is transparent lies on white, or on black where all
    that is visible is light.

    Returns:
        Shape ``(height, width, 3)``, uint8, red first.

    Raises:
        ImageError: It cannot be read, or is no image.
    """
    name = str(path)
    if path.is_dir():
        raise ImageError(name, "it is a folder", "give a file inside it")
    try:
        with Image.open(path) as image:
            image.load()
            return _as_seen(ImageOps.exif_transpose(image))
    except FileNotFoundError:
        raise ImageError(name, "there is no such file") from None
    except UnidentifiedImageError:
        raise ImageError(name, "it is no image, or of an unknown kind", "give a PNG") from None
    except (OSError, SyntaxError, ValueError, EOFError, NotImplementedError) as error:
        # Pillow raises all of these for damaged files; SyntaxError is what a broken PNG is to it.
        raise ImageError(name, f"it is damaged ({error})", "copy or download it again") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(name, str(error), "make it smaller") from error


def save_image(path: Path, image: Pixels) -> None:
    """Write *image*, red first, to *path*.

    Raises:
        ImageError: It cannot be written.
    """
    try:
        Image.fromarray(image).save(path)
    except OSError as error:
        raise ImageError(str(path), f"it cannot be written ({error.strerror or error})") from error


def draw_boxes(image: Pixels, boxes: Iterable[Any], host: Device) -> Pixels:
    """Return a copy of *image* with an outline around each of *boxes*, four corners each."""
    drawn = image.copy()
    width = max(1, round(min(image.shape[:2]) / 200))
    for box in boxes:
        corners = np.asarray(box, dtype=np.float64).round().astype(np.int32).reshape(-1, 1, 2)
        host.compute("cv2.polylines", drawn, [corners], True, _BOX_COLOUR, width)
    return drawn


def _as_seen(image: Image.Image) -> Pixels:
    if image.mode.startswith("I") or image.mode == "F":
        grey = _as_bytes(np.asarray(image))
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    if image.mode in {"LA", "PA", "RGBA", "La", "RGBa"} or "transparency" in image.info:
        return _on_background(np.asarray(image.convert("RGBA")))
    return np.asarray(image.convert("RGB"))


def _as_bytes(values: NDArray[Any]) -> Pixels:
    """Return grey *values* of 16 bits, 8 bits or a share of 1 as bytes."""
    most = values.max(initial=0)
    if most > _BYTE:
        scaled = values / _WORD_PER_BYTE
    elif values.dtype.kind == "f" and most <= 1:
        scaled = values * float(_BYTE)
    else:
        scaled = values
    return np.clip(np.rint(scaled), 0, _BYTE).astype(np.uint8)


def _on_background(image: Pixels) -> Pixels:
    colour = image[:, :, :3].astype(np.float32)
    opacity = image[:, :, 3:].astype(np.float32) / _BYTE
    visible = max(opacity.sum(), 1.0)
    brightness = (colour.mean(axis=2, keepdims=True) * opacity).sum() / visible
    background = 0 if brightness >= _HALF else _BYTE
    return np.rint(colour * opacity + background * (1 - opacity)).astype(np.uint8)
