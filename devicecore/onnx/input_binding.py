"""How each kind of array is bound to an input."""

from __future__ import annotations

import sys
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.onnx.extended_dtypes import packed
from devicecore.ort.io_binding import HOST, native_device_of, native_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.onnx.arrays import Described, ElementType
    from devicecore.onnx.ports import Port

# Up to this size, copying an array costs less than binding it.
_SMALL_BYTES = 16384


def is_small(shape: tuple[int, ...], dtype: str) -> bool:
    """Return whether an array of numpy is copied in less time than it is bound."""
    return prod(shape) * np.dtype(dtype).itemsize <= _SMALL_BYTES


@frozen
class Feed:
    """How one input is given.

    Attributes:
        bind: Takes the array and a function to call if that has to be copied since it cannot be
            read as it lies; returns what has to live until the run is over.
        write: Takes the array and writes it into a buffer that is bound for good; None if there is
            none.
    """

    bind: Callable[[Any, Callable[[], None]], object]
    write: Callable[[Any], object] | None = None


def feed(native: Any, port: Port, given: Described, *, gather: bool, keeps: bool) -> Feed:
    """Return how arrays like *given* are given to *port*.

    Args:
        native: ONNX Runtime's binding.
        port: The input.
        given: What is known of the arrays.
        gather: Whether the provider reads what is bound anew at each run, so that a buffer may be
            bound for good and small arrays be written into it.
        keeps: Whether the binding keeps what was bound until the next run.
    """
    if given.kind == "ort":
        return _value(native, port)
    assert port.element is not None  # texts are not bound
    small = gather and port.element.in_numpy and is_small(given.shape, given.dtype)
    if given.kind == "torch" and not (small and given.memory == "cpu"):
        return _tensor(native, port, port.element.number, given, keeps=keeps)
    if not port.element.in_numpy:
        return _bytes(native, port, port.element, given)
    return _small(native, port, given) if small else _array(native, port)


def _small(native: Any, port: Port, given: Described) -> Feed:
    buffer = np.empty(given.shape, given.dtype)
    native.bind_input(port.name, buffer)
    write = _tensor_writer(buffer) if given.kind == "torch" else partial(buffer.__setitem__, ...)
    return Feed(lambda array, _copied: write(array), write)


def _tensor_writer(buffer: Any) -> Callable[[Any], object]:
    torch = sys.modules["torch"]
    with torch.inference_mode(mode=False):  # or it could be written in that mode only
        copy_into_buffer = torch.from_numpy(buffer).copy_

    def write(tensor: Any) -> object:
        return copy_into_buffer(tensor.detach() if tensor.requires_grad else tensor)

    return write


def _array(native: Any, port: Port) -> Feed:
    bind_input, name = native.bind_input, port.name

    def bind(array: Any, copied: Callable[[], None]) -> object:
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            array = np.array(array, order="C", copy=True)
            copied()
        bind_input(name, array)
        return array

    return Feed(bind)


def _bytes(native: Any, port: Port, element: ElementType, given: Described) -> Feed:
    bind_input, device = native.bind_input, native_device_of(HOST)

    def bind(array: Any, copied: Callable[[], None]) -> object:
        if element.per_byte > 1:
            array = packed(array, element)
            copied()
        elif not (array.flags.c_contiguous and array.flags.aligned):
            array = np.array(array, order="C", copy=True)
            copied()
        bind_input(port.name, device, element.number, given.shape, array.ctypes.data)
        return array

    return Feed(bind)


def _tensor(native: Any, port: Port, number: int, given: Described, *, keeps: bool) -> Feed:
    # By its address: DLPack would cost as much as a small model and refuses what needs a gradient.
    bind_input, name, shape = native.bind_input, port.name, given.shape
    device, size = native_device_of(given.memory), _element_size(given.dtype)
    # What lies on a GPU is read where it lies; what a provider copies has to be bound anew.
    stays_bound = keeps and given.memory != HOST
    bound = 0

    def bind(tensor: Any, copied: Callable[[], None]) -> object:
        nonlocal bound
        address = tensor.data_ptr()
        if address % size or not tensor.is_contiguous() or tensor.is_neg():
            tensor = tensor.detach().resolve_neg().contiguous()
            if tensor.data_ptr() % size:
                tensor = tensor.clone()
            address = tensor.data_ptr()
            copied()
        if address != bound or not stays_bound:
            bind_input(name, device, number, shape, address)
            bound = address
        return tensor

    return Feed(bind)


def _element_size(dtype: str) -> int:
    size: int = getattr(sys.modules["torch"], dtype).itemsize
    return size


def _value(native: Any, port: Port) -> Feed:
    bind_input, name = native.bind_ortvalue_input, port.name

    def bind(value: Any, _copied: Callable[[], None]) -> object:
        bind_input(name, native_value(value))
        return value

    return Feed(bind)
