"""`device_scope`: makes a device the current one, for a block or a function."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from devicecore.device import Device
from devicecore.runtime import default_runtime, host_cpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from devicecore.names import DeviceName

Function = TypeVar("Function", bound="Callable[..., Any]")

# All scopes that are open here, the innermost last; no scope keeps any state of its own.
_scopes: ContextVar[tuple[Device, ...]] = ContextVar("devicecore_scopes", default=())


def current_device() -> Device:
    """Return the device of the innermost scope, CPU:0 outside of all scopes."""
    scopes = _scopes.get()
    return scopes[-1] if scopes else host_cpu()


class device_scope:  # noqa: N801 - used as a function is
    """Makes a device the current one, inside a ``with`` block or a decorated function.

    The name is read when the scope is made, the device is looked for when it is entered: a
    decorated function can be imported where its device does not exist. There is no fallback. One
    scope may be used again, also inside itself and from several threads.

    Args:
        device: A device, or the name of one.

    Raises:
        InvalidDeviceNameError: *device* is no device name.

    Examples:
        >>> with device_scope("cpu:0"):
        ...     str(current_device().parsed_name.local)
        '/device:CPU:0'
    """

    def __init__(self, device: str | DeviceName | Device) -> None:
        self.device: Device | DeviceName = (
            device if isinstance(device, Device) else default_runtime().parsed(device)
        )

    def __enter__(self) -> Device:
        """Make the device the current one.

        Raises:
            NotLiveError: Its type does not work here.
            UnknownDeviceError: There is no such device.
        """
        device = default_runtime().device(self.device)
        _scopes.set((*_scopes.get(), device))
        return device

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _scopes.set(_scopes.get()[:-1])

    def __call__(self, function: Function) -> Function:
        """Return *function*, a plain or a coroutine function, running inside this scope.

        Raises:
            TypeError: It is a class or a generator function.
        """
        if inspect.isclass(function) or inspect.isgeneratorfunction(function):
            msg = f"{function!r} is no plain or coroutine function; use a with block inside of it"
            raise TypeError(msg)
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def scoped_coroutine(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast("Function", scoped_coroutine)

        @wraps(function)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast("Function", scoped)

    def __repr__(self) -> str:
        return f"device_scope({str(self.device)!r})"
