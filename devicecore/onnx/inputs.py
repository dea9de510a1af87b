"""One clear error for what a model cannot take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from devicecore.errors import ModelError
from devicecore.onnx.arrays import describe
from devicecore.onnx.ports import dimensions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.onnx.arrays import Described
    from devicecore.onnx.ports import Port

_FIX = "give a numpy array, a torch tensor or an OrtValue"


def check_inputs(
    model: str, known: Mapping[str, Port], feeds: Mapping[str, Any], memory: str = "cpu"
) -> dict[str, Described]:
    """Look whether *feeds* are what the model takes, and return what is known of each.

    `devicecore.onnx.strings` looks at texts, and ONNX Runtime at what is no tensor; both are left
    out.

    Args:
        model: The model, for the message.
        known: Its inputs, by name.
        feeds: What is given, by the names of the inputs.
        memory: Where tensors may lie besides the host's memory.

    Raises:
        ModelError: They are not; it says what is expected and what was given.
    """
    _check_kind(model, known, feeds)
    described: dict[str, Described] = {}
    for name, port in known.items():
        if name in feeds:
            found = describe(feeds[name])
            if found is not None and port.texts is None:
                _check(model, port, found, memory)
                if port.element is not None:
                    described[name] = found
            elif port.element is not None:
                given = f"a {type(feeds[name]).__name__}"
                raise ModelError(model, f"it takes {port}, given {given}", _FIX)
        elif port.required:
            raise ModelError(model, f"it takes {port}, given {_names(feeds)}")
    if unknown := [name for name in feeds if name not in known]:
        expected = ", ".join(map(str, known.values()))
        raise ModelError(model, f"it takes {expected}, given also {_names(unknown)}")
    return described


def _check_kind(model: str, known: Mapping[str, Port], feeds: Any) -> None:
    if not isinstance(feeds, Mapping):
        given = f"a {type(feeds).__name__} instead of arrays by the names of the inputs"
        raise ModelError(model, f"it takes {', '.join(map(str, known.values()))}, given {given}")


def _check(model: str, port: Port, given: Described, memory: str) -> None:
    if not port.takes(given):
        said = f"{given.dtype} {dimensions(given.shape)}"
        raise ModelError(model, f"it takes {port}, given {said}")
    # ONNX Runtime knows by itself how it reaches its own values.
    if given.kind == "torch" and given.memory not in ("cpu", memory):
        where = "cpu" if memory == "cpu" else f"cpu or {memory}"
        said = f"a tensor on {given.memory}"
        raise ModelError(model, f"it takes {port} on {where}, given {said}", "move it there")


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
