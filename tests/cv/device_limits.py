"""A fake of hardware that nobody here has: devices of torch that lack types and operations.

A kernel runs on tensors of the CPU, inside a mode that sees every operation of torch and refuses
what the backend refuses, with its words. Host and device are told apart by a rule: what a backend
lacks may be there in NumPy's arrays, and nowhere in torch. So a table of float64 has to become
float32 or integers before it becomes a tensor, as it has to before it goes to such a device.

What is refused is public knowledge:

- Metal has no float64 (pytorch/pytorch#122602), and so no complex128.
- torch 2.4, the oldest one that we support, has no unsigned integers but bytes on MPS
  (pytorch/pytorch#159076, mended by #159094 for 2.9), and no operators for shifts
  (pytorch/pytorch#131813); its `native_functions.yaml` has "CPU, CUDA" for those of `SHIFTS`, and
  none for any other operation that a kernel uses.
- Intel's Arc of the first generation has no unit for float64 (intel/torch-xpu-ops#1742).

It cannot show how a device rounds. Metal's division and square root may be off by a bit where fast
maths is on (pytorch compiled its kernels that way), and it flushes the smallest numbers to 0; each
kernel's self-test decides about that on the device itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from attrs import frozen
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from devicecore.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable

WIDE = frozenset({torch.float64, torch.complex128})
UNSIGNED = frozenset({torch.uint16, torch.uint32, torch.uint64})
SHIFTS = frozenset(
    f"aten::__{way}__.{kind}"
    for way in ("lshift", "rshift", "ilshift", "irshift")
    for kind in ("Scalar", "Tensor")
)


@frozen
class Limits:
    """What a backend lacks.

    Attributes:
        name: Of the backend, for a person.
        device_type: Its type.
        dtypes: The element types that it has not.
        operations: Those of torch that it has not, by their names in ``native_functions.yaml``.
        error: Returns its error about an element type.
    """

    name: str
    device_type: str
    dtypes: frozenset[torch.dtype]
    operations: frozenset[str]
    error: Callable[[torch.dtype], Exception]

    def device(self) -> Device:
        """Return a device of that type, whose tensors are those of the CPU."""
        name = f"/device:{self.device_type}:0"
        return Device(name, device_class="GPU", torch_device="cpu", frameworks=("torch",))


def _of_metal(dtype: torch.dtype) -> Exception:
    if dtype in WIDE:
        return TypeError(
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
            "float64. Please use float32 instead."
        )
    return TypeError(
        f"Trying to convert {dtype} to the MPS backend but it does not have support for that dtype."
    )


def _of_intel(_dtype: torch.dtype) -> Exception:
    return RuntimeError("Required aspect fp64 is not supported on the device")


MPS = Limits("MPS of torch 2.4", "MPS", WIDE | UNSIGNED, SHIFTS, _of_metal)
XPU = Limits("XPU without float64", "XPU", WIDE, frozenset(), _of_intel)


class Refusing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses what a backend lacks, inside a ``with`` block."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.limits = limits

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run one operation of torch, or raise the backend's error."""
        named = kwargs or {}
        name = function.name()
        if name in self.limits.operations:
            msg = f"The operator '{name}' is not currently implemented for the MPS device."
            raise NotImplementedError(msg)
        self._check((args, named))
        found = function(*args, **named)
        self._check(found)
        return found

    def _check(self, values: Any) -> None:
        for value in tree_leaves(values):
            dtype = value.dtype if isinstance(value, torch.Tensor) else value
            if isinstance(dtype, torch.dtype) and dtype in self.limits.dtypes:
                raise self.limits.error(dtype)
