"""`cv2.threshold` of uint8 by Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import lookup_operation

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

threshold: Operation = lookup_operation("threshold")
