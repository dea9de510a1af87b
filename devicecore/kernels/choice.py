"""How a kernel is chosen for a device and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import NoKernelError, RefusedCallError

if TYPE_CHECKING:
    from devicecore.kernels.kernel import Kernel, KernelHost


def get_kernel(op: str, device: KernelHost, label: str = "") -> Kernel:
    """Return the kernel that goes first for *op* on *device*, whatever the arguments.

    Args:
        op: The operation.
        device: Where it is to run.
        label: Take only kernels with this label, whatever their exactness.

    Raises:
        NoKernelError: None fits; lists those that exist and why each was refused.
        TypeError: *device* is no device.
    """
    if not hasattr(device, "kernel_registry"):
        msg = f"{device!r} is no Device; `default_manager().lookup_device` finds one by its name"
        raise TypeError(msg)
    fitting, refused = fitting_kernels(op, device, label)
    if not fitting:
        raise NoKernelError(op, device.name, refused, device.kernel_registry.fix(op))
    return fitting[0]


def fitting_kernels(
    op: str, device: KernelHost, label: str
) -> tuple[tuple[Kernel, ...], dict[str, str]]:
    """Return the kernels that fit *device*, in their order, and why the others do not.

    The device's own kernels and those for its type go before those for its framework; then the
    higher priority goes first.
    """
    fitting: list[Kernel] = []
    own = [kernel for kernel in device.kernels if kernel.op == op]
    known = device.kernel_registry.find(op)
    refused = dict(device.kernel_registry.load_failures(op))  # first: others may follow from it
    for kernel in (*own, *known):
        if reason := kernel.why_not_on(device) or _why_not_for(kernel, label):
            refused[kernel.title] = reason
        else:
            fitting.append(kernel)
    fitting.sort(key=lambda kernel: (kernel.framework is not None, -kernel.priority))
    return tuple(fitting), refused


def refusals(
    kernels: tuple[Kernel, ...], device: KernelHost, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> RefusedCallError:
    """Return the error that says why none of *kernels* takes these arguments."""
    refused = {kernel.title: kernel.refusal(device, args, kwargs) for kernel in kernels}
    return RefusedCallError(kernels[0].op, device.name, refused)


def _why_not_for(kernel: Kernel, label: str) -> str:
    if label:
        return "" if kernel.label == label else f"it is not labelled {label!r}"
    if kernel.label:
        return f"it is taken only when the label {kernel.label!r} is asked for"
    if not callable(kernel.exactness) and kernel.exactness != "exact":
        return f"it is only {kernel.exactness}; ask for it by a label"
    return ""
