"""Boxes of text lines: four corners, clockwise from the top left one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.optional import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from devicecore.device import Device

    Corners = NDArray[Any]  # shape (4, 2), x before y

_SAME_LINE_PIXELS = 10
_TALL = 1.5
_CUBIC, _REPLICATE = 2, 1  # cv2.INTER_CUBIC, cv2.BORDER_REPLICATE


def smallest_box(points: NDArray[Any], host: Device) -> tuple[Corners, float]:
    """Return the smallest turned rectangle around *points*, and its shorter side."""
    rectangle = host.compute("cv2.minAreaRect", points)
    return clockwise(host.compute("cv2.boxPoints", rectangle)), min(rectangle[1])


def grown(box: Corners, ratio: float) -> NDArray[Any]:
    """Return the outline of *box* moved outwards by *ratio* times its area over its length."""
    x, y = box.astype(np.float64).T
    area = abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2
    length = np.hypot(x - np.roll(x, -1), y - np.roll(y, -1)).sum()
    pyclipper = require("pyclipper", extra="demo")
    offset = pyclipper.PyclipperOffset()
    offset.AddPath(box, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    outlines = offset.Execute(area * ratio / length) if length else []
    return np.array(outlines[0]).reshape(-1, 1, 2) if outlines else np.empty((0, 1, 2))


def clockwise(box: Corners) -> Corners:
    """Return the corners of *box* clockwise from the top left one."""
    by_x = box[np.argsort(box[:, 0])]
    left, right = by_x[:2], by_x[2:]
    left, right = left[np.argsort(left[:, 1])], right[np.argsort(right[:, 1])]
    return np.array([left[0], right[0], right[1], left[1]], dtype=np.float32)


def in_reading_order(boxes: list[Corners]) -> list[Corners]:
    """Return *boxes* line by line, from left to right in each."""
    lines: list[list[Corners]] = []
    previous = -np.inf
    for box in sorted(boxes, key=lambda box: float(box[0][1])):
        top = float(box[0][1])
        if top - previous >= _SAME_LINE_PIXELS:
            lines.append([])
        lines[-1].append(box)
        previous = top
    return [box for line in lines for box in sorted(line, key=lambda box: float(box[0][0]))]


def cut_out(image: NDArray[np.uint8], box: Corners, host: Device) -> NDArray[np.uint8]:
    """Return what lies inside *box* as an upright image; a tall one is turned on its side."""
    sides = np.linalg.norm(box - np.roll(box, -1, axis=0), axis=1)
    width, height = int(max(sides[0], sides[2])), int(max(sides[1], sides[3]))
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    matrix = host.compute("cv2.getPerspectiveTransform", box, target)
    cut: NDArray[np.uint8] = host.compute(
        "cv2.warpPerspective",
        image,
        matrix,
        (width, height),
        flags=_CUBIC,
        borderMode=_REPLICATE,
    )
    return np.rot90(cut) if height >= _TALL * width else cut
