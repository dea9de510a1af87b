"""`MigrationStrategy`: computes a function on another device, and converts its result."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from attrs import Factory, field, frozen
from attrs.validators import in_

from devicecore.errors import NotLiveError, RefusedCallError, TransferError, UnknownDeviceError
from devicecore.frameworks import loaded
from devicecore.kernels import Kernel
from devicecore.kernels.exactness import PROMISES, Exactness, is_within
from devicecore.migrate.calls.arrays import find_arrays, is_tensor
from devicecore.migrate.calls.processors import ToNumpy, process
from devicecore.migrate.calls.random_state import draw_on_host
from devicecore.scope import device_scope
from devicecore.transfer import tensors_to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from devicecore.device import Device
    from devicecore.migrate.calls.processors import ArgMapper, InputProcessor, OutputProcessor
    from devicecore.migrate.plan.optimization_plan import Options


def require_promise(promise: Exactness, options: Options, op: str, device: Device) -> None:
    """Return if a plan takes what is promised of a call.

    Args:
        promise: How near the result comes to the original's.
        options: What the plan says of such calls.
        op: The function, for the message.
        device: Where it would be computed.

    Raises:
        RefusedCallError: The plan asks for more.
    """
    if not is_within(promise, options.accept):
        reason = f"its results are only promised to be {promise}, and the plan accepts "
        refused = {"the migrator": f"{reason}{options.accept}"}
        raise RefusedCallError(op, device.name, refused)


class Strategy(Protocol):
    """Computes the calls of a wrapped function."""

    @property
    def runs_original(self) -> bool:
        """Whether it calls the original function, so that an error may be the program's own."""
        ...

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


@lru_cache(maxsize=16)
def _scope(device: Device) -> device_scope:
    """Return the scope of a device; making one takes longer than entering it."""
    return device_scope(device)


def _as_given(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def _as_tuple(processors: Iterable[InputProcessor]) -> tuple[InputProcessor, ...]:
    return tuple(processors)


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
        promise: How near the results come to the original's. A plan that asks for more gets those
            of the original.

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
    input_processors: Sequence[InputProcessor] = field(default=(), converter=_as_tuple)
    arg_mapper: ArgMapper = _as_given
    output_processor: OutputProcessor = Factory(ToNumpy)
    named_processors: Mapping[str, InputProcessor] = field(factory=dict, kw_only=True)
    promise: Exactness = field(default="exact", validator=in_(PROMISES), kw_only=True)
    runs_original: bool = field(init=False, default=False)

    def process_inputs(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], device: Device
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as they are prepared for *device*; the given ones stay."""
        return process(self.input_processors, self.named_processors, args, kwargs, device)

    def process_output(self, result: Any) -> Any:
        """Return what the caller gets for a result of the backend."""
        return self.output_processor(result)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Prepare the arguments, run the backend on *device*, and make its result the caller's.

        Raises:
            RefusedCallError: The plan asks for more than is promised.
        """
        op = getattr(original, "__qualname__", repr(original))
        require_promise(self.promise, options, op, device)
        args, kwargs = self.process_inputs(args, kwargs, device)
        args, kwargs = self.arg_mapper(args, kwargs)
        with _scope(device):
            result = device.compute(self._kernel, *args, **kwargs)
        return self.process_output(result)

    @property
    def _kernel(self) -> Any:
        is_own = isinstance(self.backend, (str, Kernel))
        return self.backend if is_own else _BackendKernel(self.backend)


@frozen
class _BackendKernel:
    """Wraps a backend that knows nothing of devices as a kernel."""

    function: Callable[..., Any]

    def __call__(self, _device: Device, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class InputsNotMovedError(RefusedCallError):
    """What a program's own function was given cannot be moved; the function has not begun."""


@frozen
class MoveInputStrategy:
    """Moves the tensors that a function is given, and runs the function itself in a scope.

    It is for functions of a program, which nothing else is known of. Moved are tensors, and those
    in lists, tuples and dicts; arrays of numpy and other objects stay as they are, such as the
    ``self`` of a method. What the function writes into a tensor that was moved is written into the
    caller's too; a list or a dict is another one. The tensors of the result go where those of the
    arguments were if they were all on one device, and where new ones are made if there were none.
    Random numbers of new tensors are the host's.
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
        """Run *original* on *device*.

        Raises:
            InputsNotMovedError: A tensor among the arguments, or something beside it, cannot go
                there.
        """
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        homes = _homes(given)
        outside = {key: each for key, each in given.items() if _has_others(each, device)}
        try:
            inside = tensors_to_device(outside, device)
        except (TransferError, NotLiveError, UnknownDeviceError) as error:
            op = getattr(original, "__qualname__", repr(original))
            raise InputsNotMovedError(op, device.name, {"its arguments": str(error)}) from error
        given |= inside
        moved = _Moved(outside, inside)
        drawn = draw_on_host(device.torch_device)  # before new tensors are made elsewhere
        with _scope(device), drawn:
            result = original(
                *(given[place] for place in range(len(args))),
                **{name: given[name] for name in kwargs},
            )
        moved.write_back()
        homes = homes or _homes_of_new_ones()
        if len(homes) == 1 and any(map(is_tensor, find_arrays(result))):
            return tensors_to_device(result, homes.pop())
        return result


def _homes(values: Any) -> set[str]:
    """Return torch's names of the devices that the tensors among values are on."""
    return {str(each.device) for each in find_arrays(values) if is_tensor(each)}


def _homes_of_new_ones() -> set[str]:
    torch = loaded("torch")
    return set() if torch is None else {str(torch.get_default_device())}


def _has_others(value: Any, device: Device) -> bool:
    """Return whether a tensor in *value* is not on *device*."""
    return bool(_homes(value) - {device.torch_device or "cpu"})


class _Moved:
    """Tensors that were moved to a device, and what they were moved from."""

    def __init__(self, outside: Any, inside: Any) -> None:
        pairs = zip(find_arrays(outside), find_arrays(inside), strict=True)
        self._pairs = [
            (old, new, new._version)  # noqa: SLF001 - as torch's own autograd counts writes
            for old, new in pairs
            if new is not old and not new.is_inference()
        ]

    def write_back(self) -> None:
        """Write what was written into the new tensors into the old ones."""
        for old, new, version in self._pairs:
            if new._version != version and old.shape == new.shape:  # noqa: SLF001 - see above
                old.detach().copy_(new.detach())
