"""`Kernel`: a function that computes one operation on a kind of device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen
from attrs.converters import optional

from devicecore.names import DEVICE_CLASSES, canonical_type, checked_framework

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.kernels.exactness import Exactness
    from devicecore.kernels.registry import KernelRegistry


class KernelHost(Protocol):
    """What a kernel needs to know of a device to fit it."""

    name: str
    device_type: str
    device_class: str
    torch_device: str | None
    session: Any
    kernel_registry: KernelRegistry

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that came with the device's own factory."""
        ...


def _canonical(device_type: str | None) -> str | None:
    return None if device_type is None else canonical_type(device_type)


@frozen(eq=False)
class Kernel:
    """A function that computes one operation on a kind of device.

    Attributes:
        op: The operation, such as ``"cv2.resize"``.
        function: ``function(device, *args, **kwargs)``; for a stateful kernel a class or function
            that takes the device and returns that function.
        device_type: The device type that it runs on, in any case, or the class ``"GPU"`` or
            ``"NPU"``.
        framework: Or the framework whose devices it runs on: ``"torch"`` fits every device with a
            ``torch_device``, ``"onnx"`` every one with a ``session``. A kernel from
            `DeviceFactory.kernels` may leave out both.
        priority: Of several that fit, the highest goes first.
        label: A kernel with a label is taken only when that label is asked for.
        pure: Whether it may be tried again elsewhere: it changes nothing but its result.
        supports: ``supports(device, *args, **kwargs)``: whether it can take these arguments.
        exactness: How near it comes to the CPU's answer, or a function of the same arguments as
            *function* that says so. An unlabelled choice takes only ``"exact"``.
        thread_safe: Whether calls may overlap on one device.
        stateful: Whether it keeps state between calls; one instance is kept for each session.
        reads_host: Whether it reads host memory although its device has memory of its own.
        why_not: ``why_not(device, *args, **kwargs)``: which argument *supports* refuses, or makes
            it less than exact; an empty string for no reason of its own.
    """

    op: str
    function: Callable[..., Any] = field(repr=False)
    device_type: str | None = field(default=None, converter=_canonical)
    framework: str | None = field(default=None, converter=optional(checked_framework))
    priority: int = 0
    label: str = ""
    pure: bool = True
    supports: Callable[..., bool] | None = field(default=None, repr=False)
    exactness: Exactness | Callable[..., Exactness] = "exact"
    thread_safe: bool = True
    stateful: bool = False
    reads_host: bool = False
    why_not: Callable[..., str] | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """The operation, with the label and whom it is for, for messages."""
        label = f"[{self.label}]" if self.label else ""
        return f"{self.op}{label} for {self.device_type or self.framework or 'its own factory'}"

    def __call__(self, device: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the function itself, without looking whether it fits *device*."""
        return self.function(device, *args, **kwargs)

    def why_not_on(self, device: KernelHost) -> str:
        """Return why it does not run on *device*, or an empty string."""
        if self.device_type not in {None, device.device_type} and not self._means(device):
            return f"it is for {self.device_type}"
        if self.framework == "torch" and device.torch_device is None:
            return "it is for devices that torch can use"
        if self.framework == "onnx" and device.session is None:
            return "it is for devices that ONNX Runtime can use"
        return ""

    def _means(self, device: KernelHost) -> bool:
        """Return whether the type means the device in other case, or as one of its class."""
        wanted = self.device_type or ""
        if wanted in DEVICE_CLASSES - {"CPU"} and device.device_class == wanted:
            return True
        return wanted.casefold() == device.device_type.casefold()

    def refusal(self, device: KernelHost, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return why it does not take these arguments, or an empty string."""
        if self.supports is not None and not self.supports(device, *args, **kwargs):
            reason = self._why_not(device, args, kwargs)
            return reason or "it does not support these arguments"
        if callable(self.exactness) and not self.label:
            promised = self.exactness(device, *args, **kwargs)
            if promised != "exact":
                reason = self._why_not(device, args, kwargs)
                return reason or f"it is only {promised} for these arguments"
        return ""

    def _why_not(self, device: KernelHost, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return self.why_not(device, *args, **kwargs) if self.why_not is not None else ""

    @property
    def predicate(self) -> Callable[..., bool] | None:
        """The function of a call's arguments that `refusal` puts into words; None takes all."""
        if self.supports is None and not self._promises_by_call:
            return None
        if not self._promises_by_call:
            return self.supports
        return lambda device, *args, **kwargs: not self.refusal(device, args, kwargs)

    @property
    def _promises_by_call(self) -> bool:
        """Whether the exactness has to be asked for; who names a label has accepted any."""
        return callable(self.exactness) and not self.label
