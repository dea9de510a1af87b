"""From the kernels that fit a device to the one function that runs an operation on it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn

from devicecore.errors import DeviceGoneError
from devicecore.kernels import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.device.device import Device
    from devicecore.kernels import Kernel

DEFAULT_SESSION = ""
"""The session of stateful kernels that are run by their operation's name."""


class NoChoices(dict[Any, Any]):
    """The choices of a device that is gone: each look-up says so."""

    def __init__(self, device: str, reason: str) -> None:
        super().__init__()
        self.device = device
        self.reason = reason

    def __missing__(self, key: object) -> NoReturn:
        raise DeviceGoneError(self.device, self.reason)


def dispatcher(kernels: Sequence[Kernel]) -> Callable[..., Any]:
    """Return ``function(device, *args, **kwargs)``: the first of *kernels* that takes a call.

    Where the first one takes all calls, that is its own function, with nothing in between.
    """
    rows = [(kernel.predicate, _callable(kernel)) for kernel in kernels]
    if rows[0][0] is None:
        return rows[0][1]
    tried = tuple(kernels)

    def dispatch(device: Device, *args: Any, **kwargs: Any) -> Any:
        for takes, function in rows:
            if takes is None or takes(device, *args, **kwargs):
                return function(device, *args, **kwargs)
        raise refusals(tried, device, args, kwargs)

    return dispatch


def _callable(kernel: Kernel) -> Callable[..., Any]:
    if kernel.thread_safe and not kernel.stateful:
        return kernel.function
    turn = threading.RLock()  # a kernel may call itself

    def serialised(device: Device, *args: Any, **kwargs: Any) -> Any:
        with turn:
            if not kernel.stateful:
                return kernel.function(device, *args, **kwargs)
            instance = device.op_segment.find_or_create(
                DEFAULT_SESSION, kernel, lambda: kernel.function(device)
            )
            return instance(device, *args, **kwargs)

    return serialised
