"""Leaves that are no tensors: numpy's arrays, modules, and objects that move themselves."""

from __future__ import annotations

import copy
import inspect
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceCoreError, TransferError
from devicecore.transfer.request import LeafKind, MoveFailedError, OneByOne
from devicecore.transfer.tensors import tensor_of
from devicecore.transfer.torch_leaves import TorchTensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.request import Request


class NumpyArrays(LeafKind):
    """Arrays of numpy: they become tensors of torch where that is asked for."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether arrays are to become tensors."""
        del value
        return request.arrays == "tensors"

    def move(self, values: Sequence[Any], request: Request) -> list[Any]:
        """Return tensors on the target; on the host they may share the arrays' memory."""
        tensors = []
        for position, value in enumerate(values):
            try:
                tensors.append(tensor_of(value))
            except DeviceCoreError as error:
                raise MoveFailedError(position, error) from error
        return TorchTensors().move(tensors, request)


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
        where = request.target.torch_device or request.target.name
        copied = copy.copy(value)
        parameter = inspect.signature(type(value).to).parameters.get("device")
        if parameter is not None and parameter.kind is parameter.KEYWORD_ONLY:
            moved = copied.to(device=where)
        else:
            moved = copied.to(where)
        return copied if moved is None else moved
