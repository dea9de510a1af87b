"""`cv2.undistort` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import operation
from devicecore.cv.ops.remap.torch import fixed_sampler
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.sampling import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from numpy.typing import NDArray

    from devicecore.cv.image import Image

# OpenCV computes the places of so many pixels together, as rows from the first one.
_TOGETHER = 1 << 12


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.random.default_rng(43).integers(0, 256, (24, 31, 3), np.uint8)
    camera = np.array([[28.0, 0, 15], [0, 27, 12.5], [0, 0, 1]])
    bent = np.array([-0.3, 0.1, 0.002, -0.001, 0.05])
    yield (image, camera, bent), {}
    yield (image[..., 0].copy(), camera, bent[:4]), {"newCameraMatrix": camera * 0.9}


@operation("src", examples=examples)
def undistort(
    src: Image,
    cameraMatrix: Any,
    distCoeffs: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    newCameraMatrix: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.undistort``."""
    read = fixed_sampler(src, cv2.BORDER_CONSTANT, None)
    given = [each for each in (distCoeffs, newCameraMatrix) if each is not None]
    if read is None or not all(isinstance(each, np.ndarray) for each in (cameraMatrix, *given)):
        return None
    camera = np.array(cameraMatrix, np.float64)
    new = camera if newCameraMatrix is None else np.array(newCameraMatrix, np.float64)
    bent = np.zeros(5) if distCoeffs is None else np.array(distCoeffs, np.float64)
    if camera.shape != (3, 3) or new.shape != (3, 3) or not np.isfinite([camera, new]).all():
        return None
    try:
        places, parts = _maps(src.size, camera, bent, new)
    except cv2.error:  # OpenCV has to say so about the call itself
        return None
    where = Table(np.stack([places[..., 0], places[..., 1], parts % PARTS, parts // PARTS]))

    def run(images: torch.Tensor) -> torch.Tensor:
        left, top, x, y = where.on(images)[:, None]
        return read.read_parts(images, left, top, x, y)

    return Plan(run)


def _maps(
    size: tuple[int, int], camera: NDArray[Any], bent: NDArray[Any], new: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return whole places and parts of a pixel, as OpenCV finds them for some rows at a time."""
    width, height = size
    together = min(max(1, _TOGETHER // width), height)
    found = []
    for top in range(0, height, together):
        part = new.copy()
        part[1, 2] = new[1, 2] - top
        rows = min(together, height - top)
        found.append(
            cv2.initUndistortRectifyMap(camera, bent, np.eye(3), part, (width, rows), cv2.CV_16SC2)
        )
    places, parts = (np.concatenate(each).astype(np.int32) for each in zip(*found, strict=True))
    return places, parts
