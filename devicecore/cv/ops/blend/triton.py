"""`cv2.addWeighted` and `cv2.convertScaleAbs` of uint8 by Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import binary_operation, lookup_operation

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

convertScaleAbs: Operation = lookup_operation("convertScaleAbs")
addWeighted: Operation = binary_operation("addWeighted", "alpha", "beta", "gamma")
