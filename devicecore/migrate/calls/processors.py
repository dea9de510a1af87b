"""Input and output processors: prepare arguments for a device, and results for the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from devicecore.migrate.calls.arrays import is_tensor
from devicecore.transfer import as_tensor, to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devicecore.device import Device


class InputProcessor(Protocol):
    """Prepares one argument for a device."""

    def __call__(self, value: Any, device: Device, /) -> Any:
        """Return what the backend is given in the place of *value*, which stays as it is."""


class OutputProcessor(Protocol):
    """Makes of a backend's result what the original function returns."""

    def __call__(self, result: Any, /) -> Any:
        """Return what the caller gets."""


class ArgMapper(Protocol):
    """Writes a call of the original function as one of the backend."""

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the backend's arguments."""
        ...


@frozen
class EnsureTensor:
    """Makes a tensor of torch on the device of an array, of a tensor elsewhere, or of numbers."""

    def __call__(self, value: Any, device: Device, /) -> Any:
        """Return *value* on the device; memory is shared with it where it is there already."""
        return as_tensor(value, device)


@frozen
class PassThrough:
    """Leaves a value as it is, on the way in or on the way out."""

    def __call__(self, value: Any, _device: Device | None = None, /) -> Any:
        """Return *value*."""
        return value


@frozen
class KeepOnDevice(PassThrough):
    """Leaves a result on the device, for a caller that goes on there.

    In a worker of a ``torch.utils.data.DataLoader`` its tensors come to the host all the same: they
    are sent to another process, and the memory of a GPU is gone when the worker ends.
    """


@frozen
class ToNumpy:
    """Makes arrays of tensors, also of those in tuples, lists and dicts."""

    def __call__(self, result: Any, /) -> Any:
        """Return the result on the host; its arrays are writable, and nobody else's memory."""
        if isinstance(result, dict):
            return {key: self(value) for key, value in result.items()}
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*map(self, result))
        if isinstance(result, (tuple, list)):
            # What torch returns several tensors in takes a sequence only.
            return type(result)([self(each) for each in result])
        if not is_tensor(result):
            return result
        # A backend may have returned its argument, and that may share the caller's memory.
        is_new = result.device.type != "cpu"
        return to_numpy(result.contiguous()) if is_new else to_numpy(result).copy()


@frozen
class SwapArgs:
    """Exchanges two positional arguments, where a backend has them the other way round.

    Attributes:
        first: The place of one of them, counted from 0.
        second: That of the other one.
    """

    first: int = 0
    second: int = 1

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments in the other order.

        Raises:
            IndexError: There are not so many positional arguments.
        """
        swapped = list(args)
        swapped[self.first], swapped[self.second] = swapped[self.second], swapped[self.first]
        return tuple(swapped), kwargs


def process(
    processors: Sequence[InputProcessor],
    named: Mapping[str, InputProcessor],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: Device,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments that processors have prepared for a device.

    Args:
        processors: Of the positional arguments; those after them are left as they are.
        named: Of arguments with names.
        args: The positional arguments.
        kwargs: The others.
        device: Where they go.
    """
    prepared = [
        processor(value, device) for processor, value in zip(processors, args, strict=False)
    ]
    rest = args[len(prepared) :]
    others = {
        name: named[name](value, device) if name in named else value
        for name, value in kwargs.items()
    }
    return (*prepared, *rest), others
