"""Makes Triton's interpreter as a GPU is: it fuses, and minds where kernels read and write."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from devicecore.cv.triton_support.launch import Launch


def _fused(_: object, x: Any, y: Any, z: Any) -> Any:
    """Return ``x * y + z``: in float64 the product is exact, and the sum nearly."""
    total = x.data.astype(np.float64) * y.data + z.data
    return TensorHandle(total.astype(z.data.dtype), z.dtype.scalar)


InterpreterBuilder.create_fma = _fused


def watch() -> None:
    """Let kernels fail that touch memory outside of their tensors, or words that are not whole."""
    builder: Any = InterpreterBuilder
    launch: Any = Launch
    call, load, store = launch.__call__, builder.create_masked_load, builder.create_masked_store
    pieces: list[tuple[int, int]] = []

    def watched_call(self: Any, *tensors: torch.Tensor) -> None:
        used = [each for each in (*tensors, *self._rest) if isinstance(each, torch.Tensor)]
        pieces[:] = [(each.data_ptr(), each.data_ptr() + each.nbytes) for each in used]
        call(self, *tensors)

    def check(pointers: Any, mask: Any) -> None:
        size = pointers.get_element_ty().primitive_bitwidth // 8
        wanted = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        places = np.asarray(pointers.data)[wanted]
        assert not (places % size).any(), "words are not whole"
        inside = np.zeros(places.shape, bool)
        for begin, end in pieces:
            inside |= (places >= begin) & (places + size <= end)
        assert inside.all(), "outside of the tensors"

    def watched_load(self: Any, pointers: Any, mask: Any, *others: Any) -> Any:
        check(pointers, mask)
        return load(self, pointers, mask, *others)

    def watched_store(self: Any, pointers: Any, value: Any, mask: Any, *others: Any) -> Any:
        check(pointers, mask)
        return store(self, pointers, value, mask, *others)

    launch.__call__ = watched_call
    builder.create_masked_load, builder.create_masked_store = watched_load, watched_store
