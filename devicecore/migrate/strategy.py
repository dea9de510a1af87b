"""`MigrationStrategy`: how a function is computed on another device, and what its callers get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from attrs import Factory, field, frozen

from devicecore.kernels import Kernel
from devicecore.migrate.processors import ToNumpy, processed
from devicecore.scope import device_scope
from devicecore.transfer import tensors_to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan import Options
    from devicecore.migrate.processors import ArgMapper, InputProcessor, OutputProcessor


class Strategy(Protocol):
    """What a wrapped function is computed by."""

    @property
    def runs_original(self) -> bool:
        """Whether it calls the original function: an error may then be the program's own."""

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what the original function would return, computed on *device*.

        Args:
            device: Where.
            options: What the plan says of such calls.
            original: The function itself.
            args: The caller's own arguments, which stay as they are if this fails.
            kwargs: More of them.

        Raises:
            DeviceError: The device or its kernels cannot; the original function then does.
        """


def _as_given(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


@frozen
class MigrationStrategy:
    """Computes calls of one function by another one that runs on devices.

    Attributes:
        backend: Called with the prepared arguments, in a scope of the device. An operation's name
            or a `Kernel` is one of the device's own kernels.
        input_processors: What prepares each positional argument; those after them stay as they are.
        arg_mapper: Writes the arguments as the backend takes them, after they were prepared.
        output_processor: Makes of the backend's result what the original function returns.
        named_processors: What prepares arguments that are given by name.

    Examples:
        >>> import torch
        >>> from devicecore.migrate import EnsureTensor, MigrationStrategy
        >>> double = MigrationStrategy(
        ...     input_processors=(EnsureTensor(),),
        ...     arg_mapper=lambda args, kwargs: ((args[0], 2), {}),
        ...     backend=torch.mul,
        ... )
    """

    backend: Any
    input_processors: Sequence[InputProcessor] = field(default=(), converter=tuple)
    arg_mapper: ArgMapper = _as_given
    output_processor: OutputProcessor = Factory(ToNumpy)
    named_processors: Mapping[str, InputProcessor] = field(factory=dict, kw_only=True)
    runs_original: bool = field(init=False, default=False)

    def process_inputs(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], device: Device
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as they are prepared for *device*; the given ones stay."""
        return processed(self.input_processors, self.named_processors, args, kwargs, device)

    def process_output(self, result: Any) -> Any:
        """Return what the caller gets for a result of the backend."""
        return self.output_processor(result)

    def compute(
        self,
        device: Device,
        options: Options,  # noqa: ARG002 - nothing of it is for any backend
        original: Callable[..., Any],  # noqa: ARG002 - the backend stands for it
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Prepare the arguments, run the backend on *device*, and make its result the caller's."""
        args, kwargs = self.process_inputs(args, kwargs, device)
        args, kwargs = self.arg_mapper(args, kwargs)
        with device_scope(device):
            result = device.compute(self._kernel, *args, **kwargs)
        return self.process_output(result)

    @property
    def _kernel(self) -> Any:
        is_own = isinstance(self.backend, (str, Kernel))
        return self.backend if is_own else _Backend(self.backend)


@frozen
class _Backend:
    """A function that knows nothing of devices, as one that a device calls."""

    function: Callable[..., Any]

    def __call__(self, _device: Device, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@frozen
class MoveInputStrategy:
    """Moves the tensors that a function is given, and runs the function itself in a scope.

    It is for functions of a program, which nothing else is known of. Arrays of numpy stay as they
    are, and the tensors of the result go where those of the arguments were, if they were all on
    one device.
    """

    runs_original: bool = field(init=False, default=True)

    def compute(
        self,
        device: Device,
        options: Options,  # noqa: ARG002 - it is what runs inside that they are for
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run *original* on *device*."""
        args, kwargs = tensors_to_device((args, kwargs), device)
        with device_scope(device):
            return original(*args, **kwargs)
