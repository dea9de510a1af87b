"""Makes Triton's interpreter fuse what kernels fuse; on a card that is one instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle


def _fused(_: object, x: Any, y: Any, z: Any) -> Any:
    """Return ``x * y + z``: in float64 the product is exact, and the sum nearly."""
    total = x.data.astype(np.float64) * y.data + z.data
    return TensorHandle(total.astype(z.data.dtype), z.dtype.scalar)


InterpreterBuilder.create_fma = _fused
