"""Leaves that are no tensors: numpy's arrays and modules."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceCoreError, TransferError
from devicecore.frameworks.base.leaf import LeafKind, MoveFailedError, OneByOne
from devicecore.transfer.tensors import tensor_of
from devicecore.transfer.torch_leaves import TorchTensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.request import Request


class NumpyArrays(LeafKind):
    """Arrays of numpy: they become tensors of torch where that is asked for."""

    holds_others = True  # those of objects

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
