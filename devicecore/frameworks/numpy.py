"""NumPy: its arrays, which are always on the host."""

from __future__ import annotations

from typing import Any, ClassVar

from devicecore.frameworks.base.dlpack import tensor_from_numpy
from devicecore.frameworks.base.framework import Framework


class NumPy(Framework):
    """NumPy."""

    module: ClassVar[str] = "numpy"
    array: ClassVar[str] = "ndarray"

    def to_torch(self, torch: Any, array: Any) -> Any:
        """Return a tensor that shares the memory if torch may write into it."""
        del torch
        return tensor_from_numpy(array)

    def to_numpy(self, numpy: Any, array: Any) -> Any:
        """Return the array itself."""
        del numpy
        return array


FRAMEWORK = NumPy()
