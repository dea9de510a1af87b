"""The kinds of arrays that models take and give: numpy's, torch's, and ONNX Runtime's own.

torch is recognised by the type of what is given, so it is never imported here.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from attrs import frozen

from devicecore.frameworks import class_in

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

Kind = Literal["numpy", "torch", "ort"]
"""Whose arrays: ``"numpy"``, ``"torch"`` or ``"ort"``."""


@frozen
class ElementType:
    """One element type of tensors.

    Attributes:
        name: What numpy or torch calls it, such as ``"float32"``.
        number: ONNX's number of it.
        in_numpy: Whether numpy has it by itself; see `devicecore.onnx.extended_dtypes`.
        per_byte: How many of them share a byte in ONNX Runtime's memory.
    """

    name: str
    number: int
    in_numpy: bool = True
    per_byte: int = 1


_NUMPY = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
}
_SPELT_OTHERWISE = {"float32": "float", "float64": "double"}
# Element types by ONNX Runtime's name of the tensors.
ELEMENT_TYPES: dict[str, ElementType] = {
    **{
        f"tensor({_SPELT_OTHERWISE.get(name, name)})": ElementType(name, number)
        for name, number in _NUMPY.items()
    },
    "tensor(bfloat16)": ElementType("bfloat16", 16, in_numpy=False),
    "tensor(float8e4m3fn)": ElementType("float8_e4m3fn", 17, in_numpy=False),
    "tensor(float8e4m3fnuz)": ElementType("float8_e4m3fnuz", 18, in_numpy=False),
    "tensor(float8e5m2)": ElementType("float8_e5m2", 19, in_numpy=False),
    "tensor(float8e5m2fnuz)": ElementType("float8_e5m2fnuz", 20, in_numpy=False),
    "tensor(float8e8m0)": ElementType("float8_e8m0fnu", 24, in_numpy=False),
    "tensor(uint4)": ElementType("uint4", 21, in_numpy=False, per_byte=2),
    "tensor(int4)": ElementType("int4", 22, in_numpy=False, per_byte=2),
    "tensor(uint2)": ElementType("uint2", 25, in_numpy=False, per_byte=4),
    "tensor(int2)": ElementType("int2", 26, in_numpy=False, per_byte=4),
}

_TORCH_NAMES = {"hip": "cuda"}  # torch calls AMD's GPUs so
_SHARE_A_BYTE = frozenset(each.name for each in ELEMENT_TYPES.values() if each.per_byte > 1)


@frozen
class Described:
    """What is known of an array without reading it.

    Attributes:
        kind: Whose it is.
        dtype: The name of its element type.
        shape: Its dimensions.
        memory: Where it lies: ``"cpu"``, or a name such as ``"cuda:0"``.
    """

    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    memory: str = "cpu"


# What decides how an array is bound: those with equal ones are bound in the same way. It runs in C,
# as small models spend a good part of a call here. Values of ONNX Runtime have no such attributes,
# and arrays of numpy 1 no device.
signature: Callable[[Any], Hashable] = attrgetter("dtype", "shape", "device")


def call_key(feeds: Mapping[str, Any], values: Sequence[Any]) -> tuple[Hashable, ...]:
    """Return what decides how a call with *values*, those of *feeds*, is bound."""
    try:
        return (*feeds, *map(signature, values))
    except AttributeError:
        return (*feeds, *map(any_signature, values))


def any_signature(value: Any) -> Hashable:
    """Return what decides how *value* is bound, also where `signature` raises AttributeError."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    if isinstance(value, class_in("onnxruntime", "OrtValue")):
        memory = value.device_name()
        index = 0 if memory == "cpu" else _index_of(value)
        return value.element_type(), tuple(value.shape()), memory, index
    known: Hashable = signature(value)
    return known


def describe(value: Any) -> Described | None:
    """Return what *value* is, or None if it is no array of a known kind."""
    if isinstance(value, np.ndarray):
        return Described("numpy", str(value.dtype), value.shape)
    if isinstance(value, class_in("torch", "Tensor")):
        if str(value.layout) != "torch.strided":
            return None
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype in _SHARE_A_BYTE:  # torch has little more of these than their names
            return None
        return Described("torch", dtype, tuple(value.shape), str(value.device))
    if isinstance(value, class_in("onnxruntime", "OrtValue")) and value.is_tensor():
        element, memory = ELEMENT_TYPES.get(value.data_type()), value.device_name()
        if memory != "cpu":
            memory = f"{_TORCH_NAMES.get(memory, memory)}:{_index_of(value)}"
        name = element.name if element else value.data_type()
        return Described("ort", name, tuple(value.shape()), memory)
    return None


def _index_of(value: Any) -> int:
    try:
        return int(value.__dlpack_device__()[1])
    except (AttributeError, RuntimeError):  # WebGPU's buffers have no number
        return 0
