"""What a model takes, and one clear error for what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# ONNX's element types that numpy has itself; the others are left to ONNX Runtime to judge.
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{
        f"tensor({kind}{bits})": f"{kind}{bits}"
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}


@frozen
class Port:
    """One input of a model.

    Attributes:
        name: Its name.
        dtype: The numpy dtype that it takes; None if it takes something that numpy has not.
        shape: Its dimensions: a number is fixed, anything else free. None if it takes any rank.
        required: Whether it must be given.
    """

    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None
    required: bool = True

    def __str__(self) -> str:
        return f"{self.name!r}: {self.dtype or 'other'} {_dimensions(self.shape)}"

    def takes(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether *array* has this dtype, rank and these fixed dimensions."""
        if self.dtype is not None and array.dtype != self.dtype:
            return False
        if self.shape is None:
            return True
        return len(self.shape) == array.ndim and all(
            wanted == given
            for wanted, given in zip(self.shape, array.shape, strict=True)
            if isinstance(wanted, int)
        )


def input_ports(session: Any) -> tuple[Port, ...]:
    """Return the inputs of ONNX Runtime's *session*, those with a default value last."""
    return (
        *_ports(session.get_inputs(), required=True),
        *_ports(session.get_overridable_initializers(), required=False),
    )


def check_inputs(model: str, ports: Iterable[Port], feeds: Mapping[str, Any]) -> None:
    """Look whether *feeds* are what the model takes.

    Raises:
        ModelError: They are not; it says what is expected and what was given.
    """
    known = {port.name: port for port in ports}
    for name, port in known.items():
        if name in feeds:
            value = feeds[name]
            if port.dtype is not None and not isinstance(value, np.ndarray):
                given = f"a {type(value).__name__}"
                raise ModelError(model, f"it takes {port}, given {given}", "give a numpy array")
            if isinstance(value, np.ndarray) and not port.takes(value):
                given = f"{value.dtype} {_dimensions(value.shape)}"
                raise ModelError(model, f"it takes {port}, given {given}")
        elif port.required:
            raise ModelError(model, f"it takes {port}, given {_names(feeds)}")
    if unknown := [name for name in feeds if name not in known]:
        expected = ", ".join(map(str, known.values()))
        raise ModelError(model, f"it takes {expected}, given also {_names(unknown)}")


def _ports(arguments: Iterable[Any], *, required: bool) -> list[Port]:
    return [
        Port(
            argument.name,
            _DTYPES.get(argument.type),
            tuple(argument.shape) if argument.type in _DTYPES and argument.shape else None,
            required,
        )
        for argument in arguments
    ]


def _dimensions(shape: Iterable[object] | None) -> str:
    if shape is None:
        return "of any shape"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
