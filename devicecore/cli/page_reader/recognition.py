"""What the text lines say: images of lines in, texts with scores out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from devicecore.device import Device
    from devicecore.onnx import OnnxModel

_HEIGHT = 48
_SHORTEST_WIDTH = 320
_BATCH = 6  # lines of like width go together, since the widest one sets the width of all
_BLANK = 0


@frozen
class Reading:
    """What one line says.

    Attributes:
        text: The text.
        score: The mean probability of its characters, from 0 to 1.
    """

    text: str
    score: float


def recognise(
    lines: Sequence[NDArray[np.uint8]],
    recogniser: OnnxModel,
    characters: Sequence[str],
    *,
    device: Device,
    host: Device,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Reading]:
    """Return what each of *lines* says.

    Args:
        lines: Images of shape ``(height, width, 3)``, blue first.
        recogniser: The model.
        characters: What its classes stand for.
        device: Runs the model.
        host: Runs everything else.
        progress: Called with the number of lines read so far.
    """
    (name,) = (port.name for port in recogniser.session(device).session.get_inputs())
    by_width = sorted(range(len(lines)), key=lambda i: lines[i].shape[1] / lines[i].shape[0])
    readings: dict[int, Reading] = {}
    for start in range(0, len(by_width), _BATCH):
        batch = by_width[start : start + _BATCH]
        feed = prepare([lines[i] for i in batch], host)
        (probabilities,) = device.compute(recogniser, {name: feed}).values()
        readings.update(zip(batch, decode(probabilities, characters), strict=True))
        progress(len(readings))
    return [readings[i] for i in range(len(lines))]


def prepare(lines: Sequence[NDArray[np.uint8]], host: Device) -> NDArray[np.float32]:
    """Return *lines* as the recogniser takes them: shape ``(n, 3, 48, w)``, values from -1 to 1.

    All get the height of 48 pixels and keep their proportions; the rest of the width is grey.
    """
    ratios = [line.shape[1] / line.shape[0] for line in lines]
    width = int(_HEIGHT * max(_SHORTEST_WIDTH / _HEIGHT, *ratios))
    feed = np.zeros((len(lines), 3, _HEIGHT, width), np.float32)
    for i, (line, ratio) in enumerate(zip(lines, ratios, strict=True)):
        own = min(width, math.ceil(_HEIGHT * ratio))
        resized = host.compute("cv2.resize", line, (own, _HEIGHT))
        feed[i, :, :, :own] = (resized.astype(np.float32).transpose(2, 0, 1) / 255 - 0.5) / 0.5
    return feed


def decode(probabilities: NDArray[np.float32], characters: Sequence[str]) -> list[Reading]:
    """Return the texts in *probabilities*, of shape ``(lines, steps, classes)``.

    At each step the likeliest class counts; the same one again and the blank add nothing.
    """
    readings = []
    for classes, likely in zip(probabilities.argmax(2), probabilities.max(2), strict=True):
        new = np.r_[True, classes[1:] != classes[:-1]] & (classes != _BLANK)
        text = "".join(characters[int(index)] for index in classes[new])
        readings.append(Reading(text, float(likely[new].mean()) if text else 0.0))
    return readings
