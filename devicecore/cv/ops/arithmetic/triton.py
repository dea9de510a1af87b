"""`cv2.add`, `subtract`, `absdiff`, `multiply` and `divide` of bytes by kernels of Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.triton_support.pointwise import combined

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation

absdiff: Operation = combined("absdiff")
add: Operation = combined("add")
divide: Operation = combined("divide", "scale")
multiply: Operation = combined("multiply", "scale")
subtract: Operation = combined("subtract")
