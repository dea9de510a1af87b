"""`cv2.min` and `max` of uint8 by Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import binary_operation

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

max: Operation = binary_operation("max")  # noqa: A001 - OpenCV's name
min: Operation = binary_operation("min")  # noqa: A001 - OpenCV's name
