"""Strategies that compute single calls of other packages' functions by torch."""

from __future__ import annotations

import inspect
import operator
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from attrs import field, frozen

from devicecore.errors import (
    DeviceError,
    NotLiveError,
    RefusedCallError,
    TransferError,
    UnknownDeviceError,
)
from devicecore.migrate.calls.arrays import find_arrays, is_tensor
from devicecore.migrate.calls.guard import is_in_worker
from devicecore.migrate.calls.processors import ToNumpy
from devicecore.migrate.calls.strategy import MoveInputStrategy, require_promise
from devicecore.scope import device_scope
from devicecore.transfer import as_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.device import Device
    from devicecore.kernels import Exactness
    from devicecore.migrate.plan.optimization_plan import Options

_LABELS: Final = (None, "torch")
# By numpy's characters: what numpy and torch both compute with, alike.
_BOTH_HAVE: Final = frozenset("?bBhilqfdFD")
_PLAIN: Final = (bool, int, float, complex)


@frozen
class Call:
    """One call to compute.

    Attributes:
        name: The dotted name of the function.
        device: Where it is computed.
        options: What the plan says of such calls.
        original: The function itself.
    """

    name: str
    device: Device
    options: Options
    original: Callable[..., Any]

    def promise(self, promise: Exactness) -> None:
        """Go on if the plan takes no less than what is promised of this call.

        Raises:
            RefusedCallError: It asks for more.
        """
        require_promise(promise, self.options, self.name, self.device)

    def promise_products(self, *values: Any) -> None:
        """Go on if the plan takes products of matrices, in the precision that torch is set to.

        Args:
            values: The factors, as tensors.

        Raises:
            RefusedCallError: It asks for more.
        """
        import torch

        is_single = any(value.dtype in (torch.float32, torch.complex64) for value in values)
        is_rough = torch.get_float32_matmul_precision() != "highest"
        on_host = self.device.torch_device in (None, "cpu")
        self.promise("close" if is_single and is_rough and not on_host else "tolerance")

    def refuse(self, reason: str) -> NoReturn:
        """Leave this call to the original function.

        Raises:
            RefusedCallError: Always.
        """
        raise RefusedCallError(self.name, self.device.name, {"the migrator": reason})

    def need(self, condition: object, reason: str) -> None:
        """Leave this call to the original function unless a condition holds.

        Raises:
            RefusedCallError: It does not.
        """
        if not condition:
            self.refuse(reason)

    def given(self, value: Any) -> Any:
        """Return an argument as the array that numpy makes of it.

        Raises:
            RefusedCallError: It is of another kind, or has values of a kind that torch has not.
        """
        import numpy as np

        is_plain = isinstance(value, (list, tuple, np.generic)) or type(value) in _PLAIN
        if is_plain and not any(is_tensor(each) for each in find_arrays(value)):
            value = np.asarray(value)
        # Some functions of numpy return a memory map for one; nobody else's do.
        kinds = (np.ndarray,) if self.name.startswith("numpy.") else (np.ndarray, np.memmap)
        if type(value) not in kinds:
            self.refuse(f"an argument is a {type(value).__name__}")
        array: Any = value
        if array.dtype.char not in _BOTH_HAVE or not array.dtype.isnative:
            self.refuse(f"torch has no {array.dtype}")
        return array

    def tensor(self, value: Any) -> Any:
        """Return an argument as a tensor on the device; on the host it may share the memory.

        Raises:
            RefusedCallError: It cannot go there.
        """
        array = self.given(value)
        if self._lacks(array.dtype.name):
            self.refuse(f"an argument is {array.dtype}, which the device has not")
        try:
            return as_tensor(array, self.device)
        except (TransferError, NotLiveError, UnknownDeviceError) as error:
            raise RefusedCallError(
                self.name, self.device.name, {"the migrator": str(error)}
            ) from error

    @property
    def has_doubles(self) -> bool:
        """Whether the device computes in double precision."""
        return not self._lacks("float64")

    def _lacks(self, dtype: str) -> bool:
        from devicecore.cv.device_types import lacks, missing_types  # it imports torch

        return lacks(missing_types(self.device), dtype)

    def axis(self, axis: Any, axes: int) -> int:
        """Return the number of an axis, counted from the first one.

        Raises:
            RefusedCallError: There is no such axis.
        """
        try:
            number = operator.index(axis)
        except TypeError:
            self.refuse(f"the axis is {axis!r}")
        if not -axes <= number < axes:
            self.refuse(f"there is no axis {number}")
        return number % axes


to_array: Final = ToNumpy()
"""Makes a new array of a tensor."""


@frozen
class TorchStrategy:
    """Computes a function of another package by torch, if it can be computed alike.

    Attributes:
        name: The dotted name of the function.
        backend: ``module:function``, with a module below this package. It is called with a `Call`
            and, by their names, all arguments of the function.
    """

    name: str
    backend: str
    runs_original: bool = field(init=False, default=False)
    # Of the function; where C code does not say them, they are those of the backend.
    _parameters: list[inspect.Signature] = field(init=False, factory=list, eq=False, repr=False)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what the function returns, computed on *device*.

        Raises:
            RefusedCallError: It cannot be computed there, or not as exactly as the plan asks for.
        """
        call = Call(self.name, device, options, original)
        call.need(options.kernel in _LABELS, f"there is no kernel {options.kernel!r} for it")
        call.need(device.torch_device, "torch does not know the device")
        backend = _imported(self.backend)
        if not self._parameters:
            self._parameters.append(_parameters(original) or backend.parameters)
        given = _by_name(call, self._parameters[0], backend.parameters, args, kwargs)
        try:
            with device_scope(device):
                return device.compute(backend, call, given)
        except _LACKING as error:
            _refuse_lacking(call, error)
            raise


@frozen
class _TorchBackend:
    """A function of ours, as a device calls it; its parameters but for the `Call`."""

    function: Callable[..., Any]
    parameters: inspect.Signature

    def __call__(self, _device: Device, call: Call, given: dict[str, Any]) -> Any:
        import torch

        with torch.no_grad():
            return self.function(call, **given)


@cache
def _imported(backend: str) -> _TorchBackend:
    module, _, name = backend.partition(":")
    function = getattr(import_module(f"devicecore.migrate.strategies.{module}"), name)
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name != "call"]
    return _TorchBackend(function, signature.replace(parameters=own))


def _parameters(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def _by_name(
    call: Call,
    theirs: inspect.Signature,
    ours: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    """Return the arguments of a call by the names of our parameters, with the defaults of theirs.

    Other versions of a package may have more parameters, which are left as they are.
    """
    try:
        bound = theirs.bind(*args, **kwargs)
    except TypeError as error:
        call.refuse(str(error))
    for name, value in bound.arguments.items():
        is_usual = name in ours.parameters or value is theirs.parameters[name].default
        call.need(is_usual, f"{name} is given")
    bound.apply_defaults()
    found = {name: each for name, each in bound.arguments.items() if name in ours.parameters}
    for name, parameter in ours.parameters.items():
        call.need(name in found or parameter.default is not parameter.empty, f"no {name} is given")
    return found


@frozen
class MovedStrategy:
    """Runs a function that takes tensors itself, on tensors that were moved to the device.

    Unlike a program's own functions, these change nothing but their result, so that whatever fails
    is answered by the same function on the host.

    Attributes:
        name: The dotted name of the function.
        promise: How near the results on a device come to the host's.
        in_workers: Whether workers of a loader may do so.
        makes_new: Whether it takes no tensors, and may be told on which device its result is.
    """

    name: str
    promise: Exactness
    in_workers: bool = True
    makes_new: bool = False
    runs_original: bool = field(init=False, default=False)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what the function returns, computed on *device*.

        Raises:
            RefusedCallError: The plan asks for more than is promised, the result is written into an
                argument or has to be on some device, or this is a worker.
        """
        call = Call(self.name, device, options, original)
        call.need(options.kernel in _LABELS, f"there is no kernel {options.kernel!r} for it")
        call.need(kwargs.get("out") is None, "the result is to be written into an argument")
        told = self.makes_new and any(map(_is_device, (*args, *kwargs.values())))
        call.need(not told, "it is told where its result is to be")
        call.need(self.in_workers or not is_in_worker(), "a worker's results lie in shared memory")
        call.promise(self.promise)
        try:
            return MoveInputStrategy().compute(device, options, original, args, kwargs)
        except _LACKING as error:
            _refuse_lacking(call, error)
            raise


_LACKING: Final = (TypeError, RuntimeError)
"""What torch raises where a device has no such type, or no such operation."""


def _refuse_lacking(call: Call, error: Exception) -> None:
    """Leave a call to the original function if an error says that the device has no such type.

    Raises:
        RefusedCallError: It does.
    """
    if isinstance(error, DeviceError):
        return
    from devicecore.cv.device_types import missing_types, why_lacking  # it imports torch

    if reason := why_lacking(missing_types(call.device), error):
        raise RefusedCallError(call.name, call.device.name, {"torch": reason}) from error


def _is_device(value: Any) -> bool:
    torch: Any = sys.modules["torch"]
    return isinstance(value, (str, torch.device))
