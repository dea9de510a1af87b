"""What a model takes and gives, as its session declares it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from devicecore.onnx.arrays import ELEMENT_TYPES, ElementType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from devicecore.onnx.arrays import Described

_TEXTS: Mapping[str, Literal["tensor", "sequence"]] = {
    "tensor(string)": "tensor",
    "seq(tensor(string))": "sequence",
}
_TENSORS = ELEMENT_TYPES.keys() | {"tensor(string)"}
_TEXT_WORDS = {"tensor": "string", "sequence": "a sequence of strings"}


@frozen
class Port:
    """One input or output of a model.

    Attributes:
        name: Its name.
        element: Its element type; None if it is no tensor, or one of texts.
        shape: Its dimensions: a number is fixed, anything else free. None if it takes any rank.
        required: Whether it must be given.
        texts: ``"tensor"`` for a tensor of texts, ``"sequence"`` for a sequence of such; else None.
    """

    name: str
    element: ElementType | None
    shape: tuple[int | str | None, ...] | None
    required: bool = True
    texts: Literal["tensor", "sequence"] | None = None

    def __str__(self) -> str:
        dtype = self.element.name if self.element else _TEXT_WORDS.get(self.texts or "", "other")
        return f"{self.name!r}: {dtype} {dimensions(self.shape)}"

    @property
    def fixed_shape(self) -> tuple[int, ...] | None:
        """Its shape, if all of its dimensions are fixed and it holds anything."""
        if self.shape is None:
            return None
        fixed = tuple(size for size in self.shape if isinstance(size, int) and size > 0)
        return fixed if len(fixed) == len(self.shape) else None

    def takes(self, given: Described) -> bool:
        """Return whether *given* has this element type, rank and these fixed dimensions."""
        if self.element is not None and given.dtype != self.element.name:
            return False
        return self.has_shape(given.shape)

    def has_shape(self, shape: Sequence[int]) -> bool:
        """Return whether an array of *shape* has its rank and its fixed dimensions."""
        if self.shape is None:
            return True
        return len(self.shape) == len(shape) and all(
            wanted == size
            for wanted, size in zip(self.shape, shape, strict=True)
            if isinstance(wanted, int)
        )


def input_ports(session: Any) -> tuple[Port, ...]:
    """Return the inputs of ONNX Runtime's *session*, those with a default value last."""
    return (
        *_ports(session.get_inputs(), required=True),
        *_ports(session.get_overridable_initializers(), required=False),
    )


def output_ports(session: Any) -> tuple[Port, ...]:
    """Return the outputs of ONNX Runtime's *session*."""
    return tuple(_ports(session.get_outputs(), required=True))


def dimensions(shape: Iterable[object] | None) -> str:
    """Return *shape* for a message, such as ``[n, 3, ?]``."""
    if shape is None:
        return "of any shape"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _ports(arguments: Iterable[Any], *, required: bool) -> list[Port]:
    return [
        Port(
            argument.name,
            ELEMENT_TYPES.get(argument.type),
            tuple(argument.shape) if argument.type in _TENSORS and argument.shape else None,
            required,
            _TEXTS.get(argument.type),
        )
        for argument in arguments
    ]
