"""torch: its devices, and the device that its factories use: one DeviceContext for each thread."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import TransferError
from devicecore.frameworks.base.adapter import Adapter
from devicecore.frameworks.base.cuda_current import TorchCuda
from devicecore.frameworks.base.dlpack import extended_dtype
from devicecore.frameworks.base.framework import Framework
from devicecore.ledger import default_ledger
from devicecore.names import DEVICE_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from devicecore.device import Device
    from devicecore.names import DeviceName

# torch keeps an index in eight bits, and wraps what does not fit: "cuda:256" is its "cuda:0".
_LAST_INDEX = 127
_UNTOUCHED = (None, None, None, None)


class TorchDefault(Adapter):
    """Swaps the device of the one DeviceContext of a thread; pushes one only if there is none.

    A context for each scope would cost every call of torch its share, and one of our own would cost
    compiled code. What is saved is the context that was pushed, or: the context that was on top,
    its device, the context that is on top now, and that of ``torch.set_default_device``.
    """

    title: ClassVar[str] = "torch"
    frameworks: ClassVar[frozenset[str]] = frozenset({"torch"})

    def __init__(self, torch: ModuleType) -> None:
        self._torch: Any = torch
        self._device = torch.device
        self._cpu = torch.device("cpu")
        core: Any = torch._C  # noqa: SLF001 - torch has no other way to its stack of modes
        self._depth = core._len_torch_function_stack  # noqa: SLF001 - see above
        self._at = core._get_function_stack_at  # noqa: SLF001 - see above
        self._push = core._push_on_torch_function_stack  # noqa: SLF001 - see above
        self._pop = core._pop_torch_function_stack  # noqa: SLF001 - see above
        self._context: Any = import_module("torch.utils._device").DeviceContext
        self._own = threading.local()

    # --- which device -------------------------------------------------------------------------

    def place_of(self, device: Device) -> Any:
        """Return the ``torch.device`` of *device*'s memory, or the note of a remote device."""
        if not device.is_local:
            return _local_calls(self._torch, device)
        memory = device.memory_device
        text = memory.torch_device or ("cpu" if memory.device_type == "CPU" else None)
        if text is None:
            raise self.refusal(device, "torch has no kernels for it")
        kind, _, index = text.partition(":")
        if reason := self._why_not(kind, int(index or 0)):
            raise self.refusal(device, reason)
        return self._cpu if text == "cpu" else self._device(text)

    def _why_not(self, kind: str, index: int) -> str:
        if index > _LAST_INDEX:
            return f"torch counts to {_LAST_INDEX}"
        if kind in {"cpu", "meta"}:
            return ""
        module = getattr(self._torch, kind, None)
        if module is None:
            named = kind == self._renamed()
            return "" if named else f"this torch knows no {kind!r}"
        if hasattr(module, "is_available") and not module.is_available():
            return f"this torch, {self._torch.__version__}, has no {kind}"
        count = module.device_count() if hasattr(module, "device_count") else index + 1
        return "" if index < count else f"torch has {count} of them"

    def _renamed(self) -> str | None:
        """Return the name that somebody gave to torch's open slot, PrivateUse1."""
        name = str(self._torch._C._get_privateuse1_backend_name())  # noqa: SLF001 - the only way
        return None if name == "privateuseone" else name

    def knows(self, name: DeviceName) -> bool:
        """Return whether *name* is ``meta``, or one of a backend that torch has or was given."""
        kind, index = (name.device_type or "").lower(), name.index or 0
        if kind == "meta":
            return index == 0
        return (kind == self._renamed() or self._has(kind)) and not self._why_not(kind, index)

    def _has(self, kind: str) -> bool:
        """Return whether a kind that is torch's alone has devices here."""
        available = getattr(getattr(self._torch, kind, None), "is_available", None)
        if kind.upper() in DEVICE_TYPES or available is None:
            return False
        try:
            self._device(kind)
        except RuntimeError:  # another module, such as torch.distributed
            return False
        return bool(available())

    def current_index(self, device_type: str) -> int | None:
        """Return the current XPU if one is open; `TorchCuda` knows the other GPUs."""
        xpu = getattr(self._torch, "xpu", None)
        if device_type != "XPU" or xpu is None or not xpu.is_initialized():
            return None
        return int(xpu.current_device())

    def torch_name(self, name: DeviceName) -> str | None:
        """Return torch's spelling, which is in lower case."""
        if not self.knows(name):
            return None
        kind = (name.device_type or "").lower()
        return kind if kind == "meta" else f"{kind}:{name.index or 0}"

    # --- setting it ---------------------------------------------------------------------------

    def save(self, place: Any) -> Any:
        """Choose the least that makes *place* what factories use."""
        depth = self._depth()
        if depth:
            top = self._top(depth)
            if top is not None and type(place) is self._device:
                return (top, top.device, top, self._of_set_default_device())
        if place is self._cpu:
            return _UNTOUCHED
        if type(place) is not self._device:
            return place
        try:
            own = self._own.context
            own.device = place
        except AttributeError:
            own = self._own.context = self._context(place)
        return own

    def set(self, place: Any, saved: Any) -> None:
        """Do that."""
        if type(saved) is not tuple:
            self._push(saved)
        elif saved[0] is not None:
            saved[0].device = place

    def leave(self, saved: Any) -> None:
        """Put back the device, or take away the context; undo ``torch.set_default_device``."""
        depth = self._depth()
        if type(saved) is not tuple:
            if depth and self._at(depth - 1) is saved:
                self._pop()
            elif type(saved) is self._context:
                self._undo(_of_pushed(saved))
            else:
                self._remove(saved)
            return
        before, device, left, _ = saved
        if before is not left or (self._top(depth) if depth else None) is not left:
            self._undo(saved)
        elif before is not None:
            before.device = device

    def join(self, upper: Any, lower: Any) -> Any:
        """Return the beginning of *lower* with the end of *upper*."""
        noted = [each for each in (upper, lower) if type(each) not in {tuple, self._context}]
        if noted:  # the note of a remote device hides no context, and stands by itself
            self.leave(lower)
            return upper
        lower, upper = _of_pushed(lower), _of_pushed(upper)
        return (lower[0], lower[1], upper[2], lower[3])

    def _top(self, depth: int) -> Any:
        """Return the context whose device counts, if there is one."""
        for position in range(depth - 1, -1, -1):
            mode = self._at(position)
            if type(mode) is self._context:
                return mode
        return None

    def _of_set_default_device(self) -> Any:
        kept = getattr(self._torch, "_GLOBAL_DEVICE_CONTEXT", None)
        return getattr(kept, "device_context", None)

    def _undo(self, saved: Any) -> None:
        """Go back although somebody set a default inside of the scope and left it so."""
        before, device, left, chosen = saved
        if self._of_set_default_device() is not chosen:
            self._torch.set_default_device(None)  # puts back the context that it had displaced
        if before is None:  # then our own has no place here either, should torch have put it back
            self._remove(left)
            self._remove(getattr(self._own, "context", None))
            return
        before.device = device
        if before is chosen and self._of_set_default_device() is not chosen:
            self._torch.set_default_device(device)
        elif self._top(self._depth()) is not before:
            self._push(before)

    def _remove(self, mode: Any) -> None:
        """Take *mode* off the stack; what others put above it stays."""
        if all(self._at(position) is not mode for position in range(self._depth())):
            return
        above = []
        while self._depth():
            found = self._pop()
            if found is mode:
                break
            above.append(found)
        for each in reversed(above):
            self._push(each)


def _of_pushed(saved: Any) -> Any:
    """Return what was saved in full; a context that we pushed stands for itself alone."""
    return saved if type(saved) is tuple else (None, None, saved, None)


def _local_calls(torch: Any, device: Device) -> Any:
    """Return a mode that notes every factory call that runs here instead of on *device*.

    Compiled code breaks at a mode that is not torch's own; what is compiled here does not run on
    another machine anyway.
    """
    factories = import_module("torch.utils._device")._device_constructors()  # noqa: SLF001 - only list

    class LocalCalls(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            if func in factories and not (kwargs or {}).get("device"):
                reason = f"{device.name} is not in this process, and a scope moves no calls to it"
                default_ledger().record(f"torch.{func.__name__}", device.name, "here", reason)
            return func(*args, **(kwargs or {}))

    return LocalCalls()


class Torch(Framework):
    """PyTorch; `devicecore.transfer` has its own ways to move its tensors."""

    module: ClassVar[str] = "torch"
    words: ClassVar[tuple[str, ...]] = ("pytorch",)
    marker: ClassVar[str] = "torch._C"
    array: ClassVar[str] = "Tensor"
    uses: ClassVar[tuple[str, ...]] = ("Tensor", "device", "_C._len_torch_function_stack")

    def adapters(self, module: ModuleType) -> Sequence[Adapter]:
        """Return what sets the device of factories, and CUDA's current device."""
        return (TorchDefault(module), TorchCuda(module))

    def name_of_device(self, device: Any, kind: str) -> str | None:
        """Return the text of a ``torch.device``."""
        return str(device) if kind == "device" else None

    def to_torch(self, torch: Any, array: Any) -> Any:
        """Return the tensor itself."""
        del torch
        return array

    def to_numpy(self, numpy: Any, array: Any) -> Any:
        """Return the values of a tensor; they share its memory where it is on the host."""
        del numpy
        torch = sys.modules["torch"]
        if array.layout is not torch.strided or array.is_nested:
            raise TransferError("", "it is no dense tensor", "call its to_dense() first")
        if array.is_quantized:
            raise TransferError("", "it is quantized", "call its dequantize() or int_repr() first")
        if array.is_meta:
            raise TransferError("", "it is on meta, where tensors have no values")
        host = array.detach().cpu().resolve_conj().resolve_neg()
        try:
            return host.numpy()
        except TypeError:  # an element type that numpy has only through ml_dtypes
            dtype = extended_dtype(str(host.dtype).removeprefix("torch."))
            words = {1: torch.uint8, 2: torch.int16}[dtype.itemsize]
            return host.view(words).numpy().view(dtype)


FRAMEWORK = Torch()
