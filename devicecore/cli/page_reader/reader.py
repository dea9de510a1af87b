"""A page read: its lines of text, where they are, and how long each stage took."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from devicecore.cli.page_reader.detection import detect_lines
from devicecore.cli.page_reader.geometry import cut_out
from devicecore.cli.page_reader.models import TextModels, find_models
from devicecore.cli.page_reader.recognition import recognise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from devicecore.cli.page_reader.recognition import Reading
    from devicecore.device import Device

_RGB_TO_BGR = 4  # cv2.COLOR_RGB2BGR; the models are taught images with blue first
_LONGEST_SIDE, _SHORTEST_SIDE = 2000, 30
_MULTIPLE = 32
_WIDEST = 8  # a wider page, or a lower one than _SHORTEST_SIDE, gets black above and below
_SURE = 0.5
_SURE_ALONE = 0.95  # of one letter alone: round things in photos read as such, though less surely


@frozen
class Line:
    """One line of text.

    Attributes:
        text: What it says.
        score: How sure that is, from 0 to 1.
        box: Its corners as (x, y) in pixels of the page, clockwise from the top left one.
    """

    text: str
    score: float
    box: tuple[tuple[float, float], ...]


@frozen
class Page:
    """What was read.

    Attributes:
        lines: The lines, from top to bottom.
        seconds: How long each stage took, in seconds.
        models: Which models read it.
    """

    lines: tuple[Line, ...]
    seconds: Mapping[str, float]
    models: str


def read_page(
    image: NDArray[np.uint8],
    *,
    device: Device,
    host: Device,
    models: TextModels | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Page:
    """Return the text of *image*.

    Args:
        image: Shape ``(height, width, 3)``, red first.
        device: Runs the models.
        host: Runs the operations on images.
        models: The models; None for the best ones installed.
        progress: Called with a few words at the start of each long step.

    Raises:
        MissingDependencyError: No models are installed.
        NotLiveError: *device* cannot run them.
        ModelError: Their files are damaged.
    """
    seconds: dict[str, float] = {}
    with _timed(seconds, "load"):
        progress("loading the models")
        models = models or find_models()
        models.detector.session(device)
        characters = models.characters(device)
    with _timed(seconds, "prepare"):
        work, scale, top = _prepare(image, host)
    with _timed(seconds, "detect"):
        progress("looking for text")
        boxes = detect_lines(work, models.detector, device, host)
    with _timed(seconds, "cut"):
        cuts = [cut_out(work, box, host) for box in boxes]
    with _timed(seconds, "recognise"):
        readings = recognise(
            cuts,
            models.recogniser,
            characters,
            device=device,
            host=host,
            progress=lambda done: progress(f"read {done} of {len(cuts)} lines"),
        )
    lines = [
        Line(reading.text, reading.score, _on_page(box, image.shape, scale, top))
        for box, reading in zip(boxes, readings, strict=True)
        if _is_text(reading)
    ]
    return Page(tuple(lines), seconds, models.generation)


def _is_text(reading: Reading) -> bool:
    letters = len(reading.text.strip())
    return letters > 0 and reading.score >= (_SURE if letters > 1 else _SURE_ALONE)


def _prepare(
    image: NDArray[np.uint8], host: Device
) -> tuple[NDArray[np.uint8], tuple[float, float], int]:
    """Return the page to work on, its scale (x, y) to *image*, and the rows added on top of it."""
    work = host.compute("cv2.cvtColor", np.ascontiguousarray(image), _RGB_TO_BGR)
    work = _resized(work, min(1.0, _LONGEST_SIDE / max(work.shape[:2])), host)
    height, width = work.shape[:2]
    larger = min(_SHORTEST_SIDE / min(height, width), _LONGEST_SIDE / max(height, width))
    work = _resized(work, max(1.0, larger), host)
    height, width = work.shape[:2]
    scale = (image.shape[1] / width, image.shape[0] / height)
    if height > _SHORTEST_SIDE and width <= _WIDEST * height:
        return work, scale, 0
    wanted = max(width // _WIDEST, _SHORTEST_SIDE) * 2
    rows = abs(wanted - height) // 2
    return host.compute("cv2.copyMakeBorder", work, rows, rows, 0, 0, 0), scale, rows


def _resized(image: NDArray[np.uint8], scale: float, host: Device) -> NDArray[np.uint8]:
    if scale == 1:
        return image
    height, width = image.shape[:2]
    sides = [max(1, round(int(side * scale) / _MULTIPLE)) * _MULTIPLE for side in (width, height)]
    resized: NDArray[np.uint8] = host.compute("cv2.resize", image, tuple(sides))
    return resized


def _on_page(
    box: NDArray[np.float32], shape: tuple[int, ...], scale: tuple[float, float], top: int
) -> tuple[tuple[float, float], ...]:
    corners = (box.astype(np.float64) - (0, top)) * scale
    corners = np.clip(corners, 0, (shape[1], shape[0]))
    return tuple((round(x, 2), round(y, 2)) for x, y in corners.tolist())


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start
