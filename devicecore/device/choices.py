"""From the kernels that fit a device to the one function that runs an operation on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceGoneError, NotLiveError, RefusedCallError
from devicecore.kernels import Kernel, fitting_kernels, refusals
from devicecore.ledger import default_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.device.device import Device

DEFAULT_SESSION = ""
"""The session of stateful kernels that are run by their operation's name."""


def why_elsewhere(device: Device) -> str:
    """Return why nothing in this process computes on *device*, or an empty string."""
    if device.is_local or device.computes_elsewhere:
        return ""
    return "it is in another process, and nothing here reaches it"


def check_can_compute(device: Device) -> None:
    """Look whether *device* computes anything at all.

    Raises:
        DeviceGoneError: It is gone.
        NotLiveError: It is in another process.
    """
    if device.gone:
        raise DeviceGoneError(device.name, device.gone)
    if reason := why_elsewhere(device):
        fix = "use a device of this process, or run the program where the device is"
        raise NotLiveError(device.name, "absent", reason, fix)


def function_for(device: Device, kernel: Any) -> Callable[..., Any]:
    """Return ``function(device, *args, **kwargs)`` that runs *kernel* on *device*.

    Raises:
        RefusedCallError: No kernel fits the device.
        TypeError: *kernel* is neither an operation's name nor a `Kernel`.
    """
    if isinstance(kernel, str):
        fitting, refused = fitting_kernels(kernel, device, "")
        if fitting:
            return dispatcher(fitting)
        if fitting_kernels(kernel, device.memory_device, "")[0]:
            return _by_its_memory(kernel)
        fix = device.kernel_registry.fix(kernel)
        raise RefusedCallError(kernel, device.name, refused, fix)
    if isinstance(kernel, Kernel):
        if reason := kernel.why_not_on(device):
            raise RefusedCallError(kernel.op, device.name, {kernel.title: reason})
        return dispatcher((kernel,))
    msg = f"invalid kernel {kernel!r}: expected an operation's name, a Kernel or a callable"
    raise TypeError(msg)


def _by_its_memory(op: str) -> Callable[..., Any]:
    """Return the function for *op* on a device that has no kernel, in whose memory another has.

    Its arguments lie there, so nothing is moved; where it is computed is in the ledger.
    """

    def run(device: Device, *args: Any, **kwargs: Any) -> Any:
        memory = device.memory_device
        reason = "it runs models only; what lies in its memory is computed by that memory's device"
        default_ledger().record(op, device.name, memory.name, reason)
        return memory.compute(op, *args, **kwargs)

    return run


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

    def serialised(device: Device, *args: Any, **kwargs: Any) -> Any:
        with device.turn_of(kernel):
            if not kernel.stateful:
                return kernel.function(device, *args, **kwargs)
            instance = device.op_segment.find_or_create(
                DEFAULT_SESSION, kernel, lambda: kernel.function(device)
            )
            return instance(device, *args, **kwargs)

    return serialised
