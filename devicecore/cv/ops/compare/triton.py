"""`cv2.min` and `max` of bytes by kernels of Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import combined

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

max: Operation = combined("max")  # noqa: A001 - OpenCV's name
min: Operation = combined("min")  # noqa: A001 - OpenCV's name
