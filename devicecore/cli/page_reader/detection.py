"""Where the text lines are: the detector's map of probabilities, made into boxes.

This is the post-processing of "Real-time Scene Text Detection with Differentiable Binarization",
with the parameters that the PP-OCR models are used with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cli.page_reader.geometry import clockwise, grown, in_reading_order, smallest_box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from devicecore.cli.page_reader.geometry import Corners
    from devicecore.device import Device
    from devicecore.onnx import OnnxModel

_SHORTER_SIDE = 736  # smaller images are enlarged until their shorter side has as many pixels
_LONGER_SIDE = 4000  # but not beyond this, or a narrow strip would become enormous
_MULTIPLE = 32  # of which the detector wants both sides to be
_TEXT = 0.3  # a pixel is text from this probability on
_BOX_SCORE = 0.5  # a box is kept from this mean probability on
_GROWTH = 1.6  # the detector is taught lines that are this much shrunk
_MOST_BOXES = 1000
_SMALLEST_SIDE = 3
_LIST, _SIMPLE = 1, 2  # cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE


def detect_lines(
    image: NDArray[np.uint8], detector: OnnxModel, device: Device, host: Device
) -> list[Corners]:
    """Return the boxes of the text lines of *image*, in reading order.

    Args:
        image: Shape ``(height, width, 3)``, blue first.
        detector: The model.
        device: Runs the model.
        host: Runs everything else.
    """
    feed = prepare(image, host)
    (name,) = (port.name for port in detector.session(device).session.get_inputs())
    (probabilities,) = device.compute(detector, {name: feed}).values()
    return boxes_in(probabilities[0, 0], image.shape[:2], host)


def prepare(image: NDArray[np.uint8], host: Device) -> NDArray[np.float32]:
    """Return *image* as the detector takes it: shape ``(1, 3, h, w)``, values from -1 to 1."""
    height, width = image.shape[:2]
    scale = min(_SHORTER_SIDE / min(height, width), _LONGER_SIDE / max(height, width))
    scale = max(1.0, scale)
    new_width, new_height = (_rounded(int(side * scale)) for side in (width, height))
    resized = host.compute("cv2.resize", image, (new_width, new_height))
    scaled = (resized.astype(np.float32) * (1 / 255) - 0.5) / 0.5
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[np.newaxis], dtype=np.float32)


def boxes_in(
    probabilities: NDArray[np.float32], size: tuple[int, ...], host: Device
) -> list[Corners]:
    """Return the boxes in the map *probabilities* of an image of *size* (height, width)."""
    mask = (probabilities > _TEXT).astype(np.uint8)
    mask = host.compute("cv2.dilate", mask, np.ones((2, 2), np.uint8))
    contours, _ = host.compute("cv2.findContours", mask * 255, _LIST, _SIMPLE)
    found = (_box_of(contour, probabilities, size, host) for contour in contours[:_MOST_BOXES])
    return in_reading_order([box for box in found if box is not None])


def _box_of(
    contour: NDArray[Any], probabilities: NDArray[np.float32], size: tuple[int, ...], host: Device
) -> Corners | None:
    """Return the box around *contour*, or None if it is too small or too unlikely."""
    core, side = smallest_box(contour, host)
    if side < _SMALLEST_SIDE or _score(probabilities, core, host) < _BOX_SCORE:
        return None
    outline = grown(core, _GROWTH)
    if not len(outline):
        return None
    box, side = smallest_box(outline, host)
    if side < _SMALLEST_SIDE + 2:
        return None
    return _in_image(box, probabilities.shape, size)


def _score(probabilities: NDArray[np.float32], box: Corners, host: Device) -> float:
    """Return the mean probability inside *box*."""
    limit = np.array(probabilities.shape[::-1]) - 1
    low = np.clip(np.floor(box.min(axis=0)).astype(np.int32), 0, limit)
    high = np.clip(np.ceil(box.max(axis=0)).astype(np.int32), 0, limit)
    part = probabilities[low[1] : high[1] + 1, low[0] : high[0] + 1]
    mask = np.zeros(part.shape, np.uint8)
    host.compute("cv2.fillPoly", mask, [(box - low).astype(np.int32)], 1)
    return float(host.compute("cv2.mean", part, mask)[0])


def _in_image(box: Corners, shape: tuple[int, ...], size: tuple[int, ...]) -> Corners | None:
    """Return *box* of a map of *shape* in an image of *size*, or None if nothing is left of it."""
    scale = np.array([size[1] / shape[1], size[0] / shape[0]])
    limit = np.array([size[1], size[0]])
    scaled = np.clip(np.round(box * scale), 0, limit).astype(np.int32)
    ordered = np.clip(clockwise(scaled), 0, limit - 1).astype(np.float32)
    width = np.linalg.norm(ordered[0] - ordered[1])
    height = np.linalg.norm(ordered[0] - ordered[3])
    return ordered if min(int(width), int(height)) > _SMALLEST_SIDE else None


def _rounded(side: int) -> int:
    return max(_MULTIPLE, round(side / _MULTIPLE) * _MULTIPLE)
