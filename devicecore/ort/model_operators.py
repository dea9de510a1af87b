"""The operators that a model uses, read from its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.ort.wire_format import WireFormatError, content_of, fields, numbers, spans, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.ort.wire_format import Bytes, Span

Operator = tuple[str, str]
"""The domain and the name of one."""

# Numbers of fields in onnx.proto.
_GRAPH, _OPSET, _FUNCTION = 7, 8, 25
_NODE, _NODE_OF_A_FUNCTION = 1, 7
_ATTRIBUTE, _GRAPHS_OF_AN_ATTRIBUTE = 5, frozenset({6, 11})
_DEEPEST = 32


def operators(model: bytes | str) -> dict[Operator, int | None]:
    """Return the operators of *model* that ONNX Runtime has to know.

    Each with the version of its domain that the model imports, None where it imports none. Those
    that the model defines itself are left out. Empty where its bytes are not understood.
    """
    try:
        with content_of(model) as content:
            return _operators(content)
    except (OSError, ValueError):
        return {}


def _operators(content: Bytes) -> dict[Operator, int | None]:
    whole = (0, len(content))
    versions = {
        text_of(content, opset, 1): (numbers(content, opset, 2) or [1])[-1]
        for opset in spans(content, whole, _OPSET)
    }
    functions = spans(content, whole, _FUNCTION)
    own = {(text_of(content, each, 10), text_of(content, each, 1)) for each in functions}
    graphs = [(graph, _NODE) for graph in spans(content, whole, _GRAPH)]
    bodies = [(function, _NODE_OF_A_FUNCTION) for function in functions]
    used = {
        operator: versions.get(operator[0])
        for span, field in (*graphs, *bodies)
        for operator in _of_nodes(content, span, field, 0)
    }
    return {operator: version for operator, version in used.items() if operator not in own}


def _of_nodes(content: Bytes, span: Span, field: int, depth: int) -> Iterator[Operator]:
    if depth > _DEEPEST:
        raise WireFormatError
    for node in spans(content, span, field):
        yield text_of(content, node, 7), text_of(content, node, 4)
        for attribute in spans(content, node, _ATTRIBUTE):
            for number, value in fields(content, attribute):
                if number in _GRAPHS_OF_AN_ATTRIBUTE and isinstance(value, tuple):
                    yield from _of_nodes(content, value, _NODE, depth + 1)
