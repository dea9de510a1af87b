"""A model of two nodes, for probes: ``y = relu(x @ w)``, written as bytes without the onnx package.

All its numbers are small whole ones, so every precision down to bf16 gives exactly the same result,
and a wrong one is a broken device, not rounding.
"""

from __future__ import annotations

import struct

INPUT, OUTPUT = "x", "y"
ROWS, COLUMNS = 2, 4
INPUT_VALUES: tuple[float, ...] = (1, -2, 3, 0, -1, 2, 0, 4)
WEIGHTS: tuple[float, ...] = (1, 0, -2, 3, 2, 1, 0, -1, 0, -3, 1, 2, -1, 2, 3, 1)
_FLOAT = 1  # TensorProto.DataType
_IR_VERSION, _OPSET = 8, 13  # old enough for every ONNX Runtime that has plug-ins


def expected_values() -> tuple[float, ...]:
    """Return what the model answers to `INPUT_VALUES`, row by row."""
    values = []
    for row in range(ROWS):
        for column in range(COLUMNS):
            terms = (
                INPUT_VALUES[row * COLUMNS + k] * WEIGHTS[k * COLUMNS + column]
                for k in range(COLUMNS)
            )
            values.append(max(0.0, sum(terms)))
    return tuple(values)


def tiny_model() -> bytes:
    """Return the serialized ``ModelProto``; the numbers are the fields of onnx.proto."""
    weights = _message(
        *(_number(1, COLUMNS) for _ in range(2)),
        _number(2, _FLOAT),
        _text(8, "w"),
        _bytes(9, struct.pack(f"<{len(WEIGHTS)}f", *WEIGHTS)),
    )
    graph = _message(
        _bytes(1, _node("MatMul", ["x", "w"], "t")),
        _bytes(1, _node("Relu", ["t"], OUTPUT)),
        _text(2, "probe"),
        _bytes(5, weights),
        _bytes(11, _value(INPUT)),
        _bytes(12, _value(OUTPUT)),
    )
    opset = _message(_text(1, ""), _number(2, _OPSET))
    return _message(_number(1, _IR_VERSION), _bytes(7, graph), _bytes(8, opset))


def one_node_model(operator: str, domain: str, version: int | None) -> bytes:
    """Return a serialized ``ModelProto`` with one node, without inputs, of *operator*.

    Args:
        operator: The operator of the node.
        domain: Its domain.
        version: The version of the domain that the model imports; None to import none.
    """
    node = _message(_node(operator, [], OUTPUT), _text(7, domain))
    output = _text(1, OUTPUT)
    graph = _message(_bytes(1, node), _text(2, "probe"), _bytes(12, output))
    imported = {"": _OPSET} | ({} if version is None else {domain: version})
    opsets = [
        _bytes(8, _message(_text(1, name), _number(2, number))) for name, number in imported.items()
    ]
    return _message(_number(1, _IR_VERSION), _bytes(7, graph), *opsets)


def _node(operator: str, inputs: list[str], output: str) -> bytes:
    names = [_text(1, name) for name in inputs]
    return _message(*names, _text(2, output), _text(3, operator.lower()), _text(4, operator))


def _value(name: str) -> bytes:
    sizes = [_bytes(1, _number(1, size)) for size in (ROWS, COLUMNS)]
    tensor = _message(_number(1, _FLOAT), _bytes(2, _message(*sizes)))
    return _message(_text(1, name), _bytes(2, _bytes(1, tensor)))


def _message(*fields: bytes) -> bytes:
    return b"".join(fields)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(payload)) + payload


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:  # noqa: PLR2004 - seven bits to a byte
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
