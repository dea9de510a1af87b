"""The result of a read page as files: the page with its boxes, and the lines as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from devicecore.cli.page_reader.images import ImageError, draw_boxes, save_image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from devicecore.device import Device


def write_page(
    folder: Path,
    source: Path,
    image: NDArray[np.uint8],
    report: Mapping[str, Any],
    host: Device,
) -> tuple[Path, Path]:
    """Write ``page.png`` and ``page.json`` into *folder*, made if need be, and return their paths.

    Args:
        folder: Where.
        source: The file that *image* came from, which is never overwritten.
        image: The page, red first.
        report: What the JSON file holds; its ``lines`` have a ``box`` each.
        host: Draws.

    Raises:
        ImageError: They cannot be written.
    """
    picture, text = folder / "page.png", folder / "page.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if picture.exists() and picture.samefile(source):
            raise ImageError(str(picture), "it would be overwritten", "give another --out folder")
        save_image(picture, draw_boxes(image, [line["box"] for line in report["lines"]], host))
        text.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        reason = f"it cannot be written ({error.strerror or error})"
        raise ImageError(str(picture), reason, "give another --out folder") from error
    return picture, text
