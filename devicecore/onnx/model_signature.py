"""What a model takes and gives, read from its file: no session is opened, no weight is read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from devicecore.errors import ModelError
from devicecore.onnx.arrays import ELEMENT_TYPES
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session
from devicecore.ort.model_file import checked_model, described
from devicecore.ort.wire_format import WireFormatError, content_of, fields, numbers, spans, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any

    from devicecore.ort.wire_format import Bytes, Span

Shape = tuple[int | str | None, ...]

# Numbers of fields in onnx.proto.
_IR_VERSION, _GRAPH = 1, 7
_INITIALIZER, _INPUT, _OUTPUT, _SPARSE_INITIALIZER = 5, 11, 12, 15
_OF_A_GRAPH = (_INITIALIZER, _INPUT, _OUTPUT, _SPARSE_INITIALIZER)
_TENSOR, _SEQUENCE, _MAP, _SPARSE, _OPTIONAL = 1, 4, 5, 8, 9
# Before this version an initializer had to be among the inputs, and could not be given.
_FIRST_WITH_DEFAULTS = 4
_STRING, _COMPLEX = 8, {14: "complex64", 15: "complex128"}
_NAMES = {each.number: each.name for each in ELEMENT_TYPES.values()} | _COMPLEX
_NAMES[_STRING] = "string"
_UNKNOWN = "unknown"
_NEGATIVE = 1 << 63
_DEEPEST = 32


@frozen
class ValueInfo:
    """One input or output of a model.

    Attributes:
        name: Its name.
        dtype: Its element type as numpy or torch calls it, such as ``"float32"``; ``"string"`` for
            texts, and ONNX' words for what is no tensor, such as ``"sequence(tensor(float32))"``.
        shape: Its dimensions: a number is fixed, a name is free and has one size wherever it
            stands, None is free. None as a whole where any rank goes, and for what is no tensor.
        required: Whether an input must be given.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    required: bool = True


@frozen
class Declared:
    """All that a model declares.

    Attributes:
        inputs: Its inputs, those with a default value last.
        outputs: Its outputs.
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]


def declared(model: bytes | Path) -> Declared:
    """Return what *model* declares to take and to give.

    Raises:
        ModelError: The file cannot be read, or is no model.
        MissingDependencyError: It is in ONNX Runtime's own format, and that is not installed.
    """
    checked = checked_model(model)
    with ExitStack() as stack:
        try:
            content = stack.enter_context(content_of(checked))
        except OSError as error:
            raise ModelError(str(checked), f"it cannot be read ({error.strerror})") from error
        if content[4:8] == b"ORTM":
            return _of_session(model)
        try:
            return _of_model(content)
        except WireFormatError:
            reason = "it is no ONNX model, or cut short"
            fix = "copy or download it again"
            raise ModelError(described(model), reason, fix) from None


def _of_session(model: bytes | Path) -> Declared:
    session = open_session(model, SessionSpec(CPU_PROVIDER)).session
    defaults = session.get_overridable_initializers()
    return Declared(
        (*_told(session.get_inputs()), *_told(defaults, required=False)),
        tuple(_told(session.get_outputs())),
    )


def _told(arguments: Iterable[Any], *, required: bool = True) -> Iterator[ValueInfo]:
    for argument in arguments:
        element = ELEMENT_TYPES.get(argument.type)
        is_tensor = argument.type.startswith("tensor(")
        word = argument.type.removeprefix("tensor(").removesuffix(")")
        dtype = element.name if element else word if is_tensor else argument.type
        shape = tuple(argument.shape) if is_tensor and argument.shape else None
        yield ValueInfo(argument.name, dtype, shape, required)


def _of_model(content: Bytes) -> Declared:
    whole = (0, len(content))
    versions, graphs = numbers(content, whole, _IR_VERSION), spans(content, whole, _GRAPH)
    if not graphs:
        raise WireFormatError
    found: dict[int, list[Span]] = {number: [] for number in _OF_A_GRAPH}
    for number, value in fields(content, graphs[-1]):
        if number in found and isinstance(value, tuple):
            found[number].append(value)
    tensors = [*found[_INITIALIZER]]
    for sparse in found[_SPARSE_INITIALIZER]:
        tensors += spans(content, sparse, 1)
    defaults = {text_of(content, tensor, 8) for tensor in tensors}
    inputs = [_value(content, span) for span in found[_INPUT]]
    needed = [each for each in inputs if each.name not in defaults]
    others = [evolve(each, required=False) for each in inputs if each.name in defaults]
    has_defaults = versions and versions[-1] >= _FIRST_WITH_DEFAULTS
    return Declared(
        tuple(needed + others if has_defaults else needed),
        tuple(_value(content, span) for span in found[_OUTPUT]),
    )


def _value(content: Bytes, span: Span) -> ValueInfo:
    kinds = spans(content, span, 2)
    dtype, shape = _type(content, kinds[-1], 0) if kinds else (_UNKNOWN, None)
    return ValueInfo(text_of(content, span, 1), dtype, shape)


def _type(content: Bytes, span: Span, depth: int) -> tuple[str, Shape | None]:
    if depth > _DEEPEST:
        raise WireFormatError
    for field, value in fields(content, span):
        if not isinstance(value, tuple):
            continue
        if field in {_TENSOR, _SPARSE}:
            name, shapes = _element(content, value), spans(content, value, 2)
            dtype = name if field == _TENSOR else f"sparse_tensor({name})"
            return dtype, _shape(content, shapes[-1]) if shapes else None
        if field in {_SEQUENCE, _OPTIONAL}:
            word = "sequence" if field == _SEQUENCE else "optional"
            return f"{word}({_inner(content, value, 1, depth)})", None
        if field == _MAP:
            return f"map({_element(content, value)},{_inner(content, value, 2, depth)})", None
    return _UNKNOWN, None


def _inner(content: Bytes, span: Span, field: int, depth: int) -> str:
    """Return the words for the type in *field*, as they stand inside those of another one."""
    inner = spans(content, span, field)
    name, _ = _type(content, inner[-1], depth + 1) if inner else (_UNKNOWN, None)
    return name if "(" in name else f"tensor({name})"


def _element(content: Bytes, span: Span) -> str:
    found = numbers(content, span, 1)
    return _NAMES.get(found[-1], _UNKNOWN) if found else _UNKNOWN


def _shape(content: Bytes, span: Span) -> Shape:
    sizes: list[int | str | None] = []
    for dimension in spans(content, span, 1):
        fixed, name = numbers(content, dimension, 1), text_of(content, dimension, 2)
        # Some tools write -1 for a free one.
        is_fixed = bool(fixed) and fixed[-1] < _NEGATIVE
        sizes.append(fixed[-1] if is_fixed else name or None)
    return tuple(sizes)
