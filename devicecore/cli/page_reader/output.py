"""The result of a read page as files: the page with its boxes, and the lines as JSON."""

from __future__ import annotations

import json
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from devicecore.cli.page_reader.images import ImageError, draw_boxes, save_image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from devicecore.device import Device


def prepare_folder(folder: Path, source: Path) -> None:
    """Make *folder* if need be, so that a long reading does not end with nowhere to write.

    Raises:
        ImageError: It cannot be made or written, or the page would overwrite *source*.
    """
    picture = folder / "page.png"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if picture.exists() and picture.samefile(source):
            raise ImageError(str(picture), "it would be overwritten", "give another --out folder")
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(picture, error) from error


def write_page(
    folder: Path,
    image: NDArray[np.uint8],
    report: Mapping[str, Any],
    host: Device,
) -> tuple[Path, Path]:
    """Write ``page.png`` and ``page.json`` into *folder*, and return their paths.

    Args:
        folder: Where; see `prepare_folder`.
        image: The page, red first.
        report: What the JSON file holds; its ``lines`` have a ``box`` each.
        host: Draws.

    Raises:
        ImageError: They cannot be written.
    """
    picture, text = folder / "page.png", folder / "page.json"
    try:
        save_image(picture, draw_boxes(image, [line["box"] for line in report["lines"]], host))
        text.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(picture, error) from error
    return picture, text


def _unwritable(picture: Path, error: OSError) -> ImageError:
    reason = f"it cannot be written ({error.strerror or error})"
    return ImageError(str(picture), reason, "give another --out folder")
