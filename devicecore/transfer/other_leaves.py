"""Leaves that are no tensors: numpy's arrays, modules, and objects that move themselves."""

from __future__ import annotations

import copy
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

from devicecore.transfer.errors import TransferError
from devicecore.transfer.request import OneByOne
from devicecore.transfer.tensors import tensor_of
from devicecore.transfer.torch_copy import move_tensor

if TYPE_CHECKING:
    from devicecore.transfer.request import Request


class NumpyArrays(OneByOne):
    """Arrays of numpy: they become tensors of torch where that is asked for."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether arrays are to become tensors."""
        del value
        return request.arrays == "tensors"

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a tensor on the target; on the host it may share the array's memory."""
        return move_tensor(tensor_of(value), request)


class Modules(OneByOne):
    """Modules of torch: moving one changes it, which is for its owner to decide."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether one of its parameters or buffers is elsewhere."""
        where = request.target.torch_device
        return any(each.device != where for each in chain(value.parameters(), value.buffers()))

    def move_one(self, value: Any, request: Request) -> Any:
        """Refuse it."""
        raise TransferError(
            "",
            f"it is a module ({type(value).__qualname__}), and moving one changes it in place",
            f"call its .to({request.target.name!r}) yourself, or leave it out",
        )


class ObjectsWithTo(OneByOne):
    """Objects with a method ``to`` that takes a device, such as those of other libraries."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it has to be asked: unless all tensors that one sees are there."""
        where = request.target.torch_device
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        seen = [
            each.device != where
            for each in getattr(value, "__dict__", {}).values()
            if tensor is not None and isinstance(each, tensor)
        ]
        return any(seen) or not seen

    def move_one(self, value: Any, request: Request) -> Any:
        """Ask a shallow copy; one that returns nothing has moved itself."""
        where = request.target.torch_device
        copied = copy.copy(value)
        moved = copied.to(request.target.name if where is None else where)
        return copied if moved is None else moved
