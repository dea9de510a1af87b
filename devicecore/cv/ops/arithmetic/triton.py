"""`cv2.add`, `subtract`, `absdiff`, `multiply` and `divide` of uint8 by Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import binary_operation

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

absdiff: Operation = binary_operation("absdiff")
add: Operation = binary_operation("add")
divide: Operation = binary_operation("divide", "scale")
multiply: Operation = binary_operation("multiply", "scale")
subtract: Operation = binary_operation("subtract")
