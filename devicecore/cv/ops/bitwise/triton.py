"""`cv2.bitwise_and`, `_or`, `_xor` and `_not` of uint8 by Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import binary_operation, lookup_operation

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

bitwise_not: Operation = lookup_operation("bitwise_not")
bitwise_and: Operation = binary_operation("bitwise_and")
bitwise_or: Operation = binary_operation("bitwise_or")
bitwise_xor: Operation = binary_operation("bitwise_xor")
