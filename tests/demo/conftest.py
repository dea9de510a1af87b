"""Pages to read: one from a package, the others drawn here."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from devicecore.device import Device
from devicecore.optional import package_dir
from devicecore.ort import CPU_PROVIDER, SessionSpec

Pixels = NDArray[np.uint8]

COMIC = (
    ((60, 60, 430, 190), ("WHERE IS THE", "DEVICE?")),
    ((60, 460, 330, 560), ("NOT HERE!",)),
    ((490, 460, 840, 560), ("LOOK BEHIND YOU",)),
    ((60, 850, 480, 1000), ("IT WAS LIVE", "ALL ALONG")),
)
PANELS = {
    (30, 30, 870, 400): (200, 225, 255),
    (30, 430, 440, 780): (255, 235, 190),
    (460, 430, 870, 780): (210, 250, 210),
    (30, 810, 870, 1170): (245, 205, 205),
}


@pytest.fixture(scope="session")
def cpu() -> Device:
    """The host, with ONNX Runtime's CPU provider."""
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of scikit-image's sample images."""
    folder = package_dir("skimage")
    if folder is None:
        pytest.skip("scikit-image, which has the sample images, is not installed")
    return folder / "data"


@pytest.fixture(scope="session")
def comic() -> Pixels:
    """A page of four panels, each with a figure and words in a bubble."""
    image = Image.new("RGB", (900, 1200), "white")
    draw = ImageDraw.Draw(image)
    for (left, top, right, bottom), colour in PANELS.items():
        draw.rectangle((left, top, right, bottom), fill=colour, outline="black", width=6)
        _figure(draw, (left + right) // 2 + 120, (top + bottom) // 2 + 60)
    font = ImageFont.load_default(30)
    for (left, top, right, bottom), words in COMIC:
        draw.ellipse((left, top, right, bottom), fill="white", outline="black", width=4)
        for row, line in enumerate(words):
            y = (top + bottom) // 2 + (row - (len(words) - 1) / 2) * 38
            draw.text(((left + right) // 2, y), line, fill="black", font=font, anchor="mm")
    return np.asarray(image)


def _figure(draw: Any, x: int, y: int) -> None:
    draw.ellipse((x - 40, y - 110, x + 40, y - 30), fill="white", outline="black", width=4)
    for line in [
        (x, y - 30, x, y + 60),
        (x - 50, y, x + 50, y),
        (x, y + 60, x - 30, y + 110),
        (x, y + 60, x + 30, y + 110),
    ]:
        draw.line(line, fill="black", width=5)
