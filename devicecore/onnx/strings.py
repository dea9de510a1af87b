"""Texts for models, made sure of before ONNX Runtime reads them.

It reads beyond arrays of bytes, takes void for text, and writes what Python prints of other
objects: ``None`` where there is none, ``b'a'`` of bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.errors import ModelError
from devicecore.onnx.ports import dimensions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.onnx.ports import Port

_FIX = "give an array of str, or of bytes in UTF-8; array.astype(str) makes texts of numbers"
_STRINGS = "T"  # numpy's kind of its texts of any length


class _NotTextsError(ValueError):
    """Says what was given instead of texts."""


def with_texts(model: str, known: Mapping[str, Port], feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Return *feeds* with every input of texts as an array of ``str``.

    Args:
        model: The model, for the message.
        known: Its inputs, by name.
        feeds: What is given, by the names of the inputs.

    Raises:
        ModelError: One is no array of texts, or one of another shape; it says what was given.
    """
    return {name: _checked(model, known[name], value) for name, value in feeds.items()}


def _checked(model: str, port: Port, value: Any) -> Any:
    if port.texts is None or _is_of_onnxruntime(value):
        return value
    try:
        if port.texts == "tensor":
            return _fitting(port, _array(value))
        if isinstance(value, list | tuple):
            return [_array(each) for each in value]
    except ValueError as error:
        raise ModelError(model, f"it takes {port}, given {error}", _FIX) from None
    return value  # a sequence that is none: ONNX Runtime says so


def _is_of_onnxruntime(value: Any) -> bool:
    return hasattr(value, "data_type") and hasattr(value, "is_tensor")


def _fitting(port: Port, array: Any) -> Any:
    if not port.has_shape(array.shape):
        msg = f"texts {dimensions(array.shape)}"
        raise _NotTextsError(msg)
    return array


def _array(value: Any) -> Any:
    """Return *value* as an array of ``str``.

    Raises:
        ValueError: It holds something else, or is no array; the error says what.
    """
    if not isinstance(value, np.ndarray):
        if not isinstance(value, str | bytes | list | tuple | np.generic):
            msg = f"a {type(value).__name__}"
            raise _NotTextsError(msg)
        value = np.array(value, dtype=object)
    if value.dtype.kind not in {"U", "S", "O", _STRINGS}:
        msg = f"{value.dtype} {dimensions(value.shape)}"
        raise _NotTextsError(msg)
    return _texts(value)


def _texts(value: Any) -> Any:
    """Return an array of ``str`` of an array of texts, or of objects that are some.

    Raises:
        ValueError: One is none; the error says where.
    """
    texts = value.astype(object, order="C")
    members = texts.ravel().tolist()
    kinds = set(map(type, members))
    try:
        if kinds == {str}:
            "".join(members).encode()  # half a character is none in what is longer, too
            return texts
        if kinds == {bytes}:
            members = list(map(bytes.decode, members))
            texts.ravel()[:] = members
            return texts
    except UnicodeError:
        pass  # the one of them that it is about is found below
    for place in np.ndindex(value.shape):
        texts[place] = _text(texts[place], place)
    return texts


def _text(value: Any, place: tuple[int, ...]) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            msg = f"bytes that are no UTF-8 {_at(place)}"
            raise _NotTextsError(msg) from None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            msg = f"half a character (a surrogate) {_at(place)}"
            raise _NotTextsError(msg) from None
        return str(value)
    msg = f"{'None' if value is None else f'a {type(value).__name__}'} {_at(place)}"
    raise _NotTextsError(msg)


def _at(place: tuple[int, ...]) -> str:
    return f"at {list(place)}" if place else "for the text"
