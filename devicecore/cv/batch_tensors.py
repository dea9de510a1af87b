"""Gathers the images of one call as tensors on one device, as kernels take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv.image import BATCH_AXES
from devicecore.transfer import as_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device


def gather_tensors(images: Sequence[Any], device: Device) -> list[Any]:
    """Return the images of a call as tensors on *device*; arrays go there.

    Args:
        images: Arrays, and tensors; the first one says whether they are a batch.
        device: Where the call is computed.

    Raises:
        ValueError: A tensor is elsewhere, or images of a batch stand beside a single one, or beside
            another number of them.
    """
    tensors = [as_tensor(each, device) if isinstance(each, np.ndarray) else each for each in images]
    first = tensors[0]
    count = len(first) if first.ndim == BATCH_AXES else 1
    for image in tensors[1:]:
        if image.device != first.device:
            msg = f"images of one call are on one device, not {first.device} and {image.device}"
            raise ValueError(msg)
        if image.ndim == BATCH_AXES and len(image) not in {1, count}:
            msg = f"batches of one call have the same length, not {count} and {len(image)}"
            raise ValueError(msg)
    return tensors
