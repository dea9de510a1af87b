"""How each kind of array is made of an output: a new one for each call, never one of before."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.onnx.extended_dtypes import extended_dtype, read_value
from devicecore.onnx.input_binding import is_small
from devicecore.ort.io_binding import HOST, native_device_of, value_on, value_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.onnx.arrays import ElementType, Kind
    from devicecore.onnx.ports import Port


@frozen
class BoundOutput:
    """How one output is had.

    Attributes:
        take: Gives it after a run.
        make_room: Makes room for it before a run; None where there is room already.
    """

    take: Callable[[], Any]
    make_room: Callable[[], object] | None = None


def result(
    native: Any,
    port: Port,
    index: int,
    *,
    kind: Kind,
    memory: str,
    shape: tuple[int, ...] | None,
) -> BoundOutput:
    """Return how the output *port* is had.

    Args:
        native: ONNX Runtime's binding.
        port: The output.
        index: Its place among the outputs.
        kind: Whose array it shall be. What numpy has no element type for is one of ml_dtypes where
            that is installed, and else stays an ``OrtValue``, as does what torch has none for.
        memory: Where it shall lie, ``"cpu"`` or ``"cuda:0"``.
        shape: Its shape if that is always the same, else None.
    """
    element = port.element
    assert element is not None  # what is no tensor is not bound
    if kind == "numpy" and element.in_numpy:
        if shape is None:
            return _allocated(native, port.name, index, memory, _as_array)
        make = _copied if is_small(shape, element.name) else _new_array
        return make(native, port.name, shape, element.name)
    if kind == "numpy" and (dtype := extended_dtype(element)) is not None:
        read = partial(read_value, element=element, dtype=dtype)
        return _allocated(native, port.name, index, memory, read)
    if kind == "torch" and element.per_byte == 1:
        return _torch_result(native, port.name, index, element, memory=memory, shape=shape)
    return _allocated(native, port.name, index, memory, value_type())


def _torch_result(
    native: Any,
    name: str,
    index: int,
    element: ElementType,
    *,
    memory: str,
    shape: tuple[int, ...] | None,
) -> BoundOutput:
    torch = sys.modules["torch"]
    if shape is None:
        as_tensor = _as_tensor(getattr(torch, element.name))
        return _allocated(native, name, index, memory, as_tensor)
    if memory == HOST and element.in_numpy and is_small(shape, element.name):
        take, from_numpy = _copied(native, name, shape, element.name).take, torch.from_numpy
        return BoundOutput(lambda: from_numpy(take()))
    return _new_tensor(native, name, element, memory, shape)


def _as_array(value: Any) -> Any:
    return value.numpy()


def _copied(native: Any, name: str, shape: tuple[int, ...], dtype: str) -> BoundOutput:
    buffer = np.empty(shape, dtype)
    native.bind_ortvalue_output(name, value_on(buffer, native_device_of(HOST)))
    return BoundOutput(buffer.copy)


def _new_array(native: Any, name: str, shape: tuple[int, ...], dtype: str) -> BoundOutput:
    made: list[Any] = []
    device = native_device_of(HOST)

    def make_room() -> None:
        array = np.empty(shape, dtype)
        native.bind_ortvalue_output(name, value_on(array, device))
        made.append(array)

    return BoundOutput(made.pop, make_room)


def _new_tensor(
    native: Any, name: str, element: ElementType, memory: str, shape: tuple[int, ...]
) -> BoundOutput:
    made: list[Any] = []
    torch = sys.modules["torch"]
    number, device = element.number, native_device_of(memory)
    # One element, seen in every place: making one like it costs half of making one from words.
    like = torch.empty((), dtype=getattr(torch, element.name), device=memory).expand(shape)
    empty, dense = torch.empty_like, torch.contiguous_format

    def make_room() -> None:
        tensor = empty(like, memory_format=dense)
        native.bind_output(name, device, number, shape, tensor.data_ptr())
        made.append(tensor)

    return BoundOutput(made.pop, make_room)


def _allocated(
    native: Any, name: str, index: int, memory: str, convert: Callable[[Any], Any]
) -> BoundOutput:
    """Let ONNX Runtime allocate it, since only it knows the shape."""
    device = native_device_of(memory)
    native.bind_output(name, device)

    def take() -> Any:
        value = native.get_outputs()[index]
        native.bind_output(name, device)  # or the next run would write into the same memory
        return convert(value)

    return BoundOutput(take)


def _as_tensor(dtype: Any) -> Callable[[Any], Any]:
    torch = sys.modules["torch"]

    def convert(value: Any) -> Any:
        if not hasattr(value, "__dlpack__"):  # builds for the CPU before onnxruntime 1.24 or so
            return torch.from_numpy(value.numpy())
        tensor = torch.utils.dlpack.from_dlpack(value.__dlpack__())
        return tensor.view(dtype)  # an older ONNX Runtime gives truth values as bytes

    return convert
