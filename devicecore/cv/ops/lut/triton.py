"""`cv2.LUT` of bytes by kernels of Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import by_table

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

LUT: Operation = by_table("LUT")
