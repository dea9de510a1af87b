"""`cv2.addWeighted` and `cv2.convertScaleAbs` of bytes by kernels of Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import by_table, combined

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

convertScaleAbs: Operation = by_table("convertScaleAbs")
addWeighted: Operation = combined("addWeighted", "alpha", "beta", "gamma")
