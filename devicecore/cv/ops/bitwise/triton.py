"""`cv2.bitwise_and`, `_or`, `_xor` and `_not` of bytes by kernels of Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import by_table, combined

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

bitwise_not: Operation = by_table("bitwise_not")
bitwise_and: Operation = combined("bitwise_and")
bitwise_or: Operation = combined("bitwise_or")
bitwise_xor: Operation = combined("bitwise_xor")
