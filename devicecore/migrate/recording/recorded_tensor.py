"""`RecordedTensor`: a torch tensor made of a lazy array.

Programs end a sample with ``torch.from_numpy``, and perhaps scale and normalise the tensor. As long
as that is all, the values need not be there yet. Whatever else torch does gets the tensor itself,
which then stays on the host for good.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.migrate.recording.lazy_array import LazyArray
from devicecore.migrate.recording.materialize import ORDINARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # What torch is to do is None.
    Recorded = Callable[..., "RecordedTensor | LazyArray | None"]

_FLOATS: Final[Mapping[torch.dtype, type[np.floating[Any]]]] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
}
_NUMBERS: Final = frozenset({int, float})
_LARGEST_INTEGER: Final = 1 << 53


class RecordedTensor(torch.Tensor):
    """A torch tensor whose values are those of a lazy array.

    It has no memory, so that nothing written in C can read values that are not there.
    """

    _array: LazyArray
    _made: torch.Tensor | None

    @staticmethod
    def of(array: LazyArray, like: torch.Tensor) -> RecordedTensor:
        """Return what stands for the tensor of an array.

        Args:
            array: The array.
            like: A tensor of the same shape, type and strides, with any values.
        """
        made: Any = torch.Tensor
        found: RecordedTensor = made._make_wrapper_subclass(  # noqa: SLF001 - torch's own way
            RecordedTensor, like.shape, like.stride(), dtype=like.dtype, device="cpu"
        )
        found._array, found._made = array, None
        return found

    @property
    def array(self) -> LazyArray:
        """The array whose values it has."""
        return self._array

    @property
    def on_host(self) -> torch.Tensor:
        """The tensor on the host, always the same one; from now on the values are there."""
        found = self._made
        if found is None:
            found = self._made = torch.from_numpy(self._array.values)
        return found

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        own = args[0] if args else None
        if type(own) is RecordedTensor and not own.array.is_on_host:
            if func in _WITHOUT_VALUES:
                with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - as torch says to
                    return func(*args, **kwargs)
            recorded = _RECORDED.get(func)
            is_plain = not kwargs and not any(each is None for each in args)
            found = recorded(own, *args[1:]) if recorded is not None and is_plain else None
            if found is not None:
                return found
        return _on_host(func, args, kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override] # torch's own types leave out the function
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        del types
        return _on_host(func, args, kwargs or {})


ORDINARY[RecordedTensor] = attrgetter("on_host")


def _on_host(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Let torch do it with the tensors themselves."""
    stood_for: dict[int, RecordedTensor] = {}
    given = _real(tuple(args), stood_for)
    found = func(*given, **_real(kwargs, stood_for))
    return stood_for.get(id(found), found)  # what is changed in place stays the program's own


def _real(value: Any, stood_for: dict[int, RecordedTensor]) -> Any:
    own = type(value)
    if own is RecordedTensor:
        stood_for[id(value.on_host)] = value
        return value.on_host
    if own is tuple or own is list:
        return own([_real(each, stood_for) for each in value])
    if own is dict:
        return {key: _real(each, stood_for) for key, each in value.items()}
    return value


def from_array(array: Any) -> RecordedTensor | None:
    """Return what stands for the tensor that has an array's memory.

    None if the array is not recorded. torch's errors are those of an array of the same kind.
    """
    if type(array) is not LazyArray or array.is_on_host:
        return None
    return RecordedTensor.of(array, torch.from_numpy(array.layout))


def from_copy(array: LazyArray) -> RecordedTensor | None:
    """Return what stands for a tensor of an array's values in memory of its own.

    As ``torch.tensor``, it keeps the order of the axes in memory, and refuses what `from_array`
    does. None if that is not recorded.
    """
    if from_array(array) is None:
        return None
    strides = array.layout.strides
    order = sorted(range(array.ndim), key=lambda axis: -strides[axis])
    if order == [*range(array.ndim)]:
        return from_array(array.copy())
    back = [order.index(axis) for axis in range(array.ndim)]
    return from_array(array.transpose(order).copy().transpose(back))


def _permuted(own: RecordedTensor, *axes: Any) -> RecordedTensor | None:
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    is_whole = len(given) == own.array.ndim
    return from_array(own.array.transpose(tuple(given))) if is_whole else None


def _contiguous(own: RecordedTensor) -> RecordedTensor | None:
    array = own.array.contiguous()
    return own if array is own.array else from_array(array)


def _cloned(own: RecordedTensor) -> RecordedTensor | None:
    # Of views torch keeps the order of the axes, as numpy's copies do not.
    return None if own.array.is_view else from_array(own.array.copy())


def cast_tensor(own: RecordedTensor, dtype: Any) -> RecordedTensor | None:
    """Return the values in another type; None if torch is to do that."""
    if dtype not in _FLOATS:
        return None
    return own if dtype == own.dtype else from_array(own.array.astype(_FLOATS[dtype]))


def _calculated(name: str) -> Recorded:
    """Return what does arithmetic with numbers and small tensors, as torch and numpy round it."""

    def recorded(own: RecordedTensor, other: Any) -> RecordedTensor | None:
        array, constant = own.array, _constant(other, own)
        if own.dtype == torch.uint8 and name == "true_divide" and type(other) in _NUMBERS:
            array, constant = array.astype(np.float32), _number(other, np.float32)
        if constant is None or array.dtype.kind != "f":
            return None
        return from_array(array.calculated(name, (array, constant)))

    return _of_two(recorded)


def _in_place(name: str) -> Recorded:
    def recorded(own: RecordedTensor, other: Any) -> RecordedTensor | None:
        array, constant = own.array, _constant(other, own)
        found = None if constant is None else array.calculated(name, (array, constant))
        return own if found is not None and array.take_values_of(found) else None

    return _of_two(recorded)


def _of_one(function: Callable[[RecordedTensor], Any]) -> Recorded:
    return lambda own, *given: None if given else function(own)


def _of_two(function: Callable[[RecordedTensor, Any], Any]) -> Recorded:
    return lambda own, *given: function(own, *given) if len(given) == 1 else None


def _constant(other: Any, own: RecordedTensor) -> Any:
    """Return a number, or a tensor of the same type, for numpy; None if it is neither."""
    if own.dtype not in _FLOATS:
        return None
    if type(other) in _NUMBERS:
        return _number(other, _FLOATS[own.dtype])
    is_plain = type(other) is torch.Tensor and other.device.type == "cpu"
    if not is_plain or other.requires_grad or other.dtype != own.dtype or not other.ndim:
        return None
    return other.numpy().copy()


def _number(value: float, kind: type[np.floating[Any]]) -> Any:
    """Return a number for numpy; None if the two may not make the same of it, or numpy warns."""
    # torch rounds whole numbers once, numpy to a double first, and neither takes all of them.
    largest = _LARGEST_INTEGER if type(value) is int else float(np.finfo(kind).max)
    if not abs(value) <= largest:
        return None
    with np.errstate(under="ignore"):
        return kind(value)


_ARITHMETIC: Mapping[str, str] = {
    "add": "add", "div": "true_divide", "mul": "multiply", "sub": "subtract",
    "true_divide": "true_divide",
}  # fmt: skip
_OPERATORS: Mapping[str, str] = {
    "add": "add", "mul": "multiply", "sub": "subtract", "truediv": "true_divide",
}  # fmt: skip
_NAMED: Mapping[str, Recorded] = {
    "clone": _of_one(_cloned),
    "contiguous": _of_one(_contiguous),
    "double": _of_one(lambda own: cast_tensor(own, torch.float64)),
    "float": _of_one(lambda own: cast_tensor(own, torch.float32)),
    "numpy": _of_one(lambda own: own.array),
    "permute": _permuted,
    "to": _of_two(cast_tensor),
    "type": _of_two(cast_tensor),
    **{name: _calculated(each) for name, each in _ARITHMETIC.items()},
    **{f"{name}_": _in_place(each) for name, each in _ARITHMETIC.items()},
    **{f"__{name}__": _calculated(each) for name, each in _OPERATORS.items()},
    **{f"__i{name}__": _in_place(each) for name, each in _OPERATORS.items()},
}
_RECORDED: Final[Mapping[Any, Recorded]] = {
    getattr(owner, name): recorded
    for owner in (torch.Tensor, torch)
    for name, recorded in _NAMED.items()
    if callable(getattr(owner, name, None))
}
# What asks only for the kind of a tensor.
_WITHOUT_VALUES: Final = frozenset(
    [getattr(torch.Tensor, name).__get__ for name in (
        "device", "dtype", "grad", "grad_fn", "is_cuda", "is_leaf", "is_meta", "is_quantized",
        "is_sparse", "itemsize", "layout", "nbytes", "ndim", "requires_grad", "shape",
    )]
    + [getattr(torch.Tensor, name) for name in (
        "__len__", "dim", "element_size", "get_device", "is_complex", "is_contiguous",
        "is_floating_point", "ndimension", "nelement", "numel", "size", "stride",
    )]
)  # fmt: skip
