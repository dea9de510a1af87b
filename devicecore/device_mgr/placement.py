"""Where the arguments of a call lie, and which devices can read them there.

Frameworks are recognised by the types of the arguments, so none is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.names import canonical_torch_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from devicecore.device import Device

ANYWHERE = ""
HOST = "cpu"
_CONTAINERS = (list, tuple, dict)
_TORCH_NAMES = {"hip": "cuda"}  # torch calls AMD's GPUs so


def _torch(tensor: Any) -> str:
    return str(tensor.device)


def _ort(value: Any) -> str:
    name = value.device_name()
    if name == HOST:
        return HOST
    name = _TORCH_NAMES.get(name, name)
    try:
        return f"{name}:{value.__dlpack_device__()[1]}"
    except (AttributeError, RuntimeError):  # builds without DLPack, and WebGPU's buffers
        return f"{name}:0"


def _host(_: Any) -> str:
    return HOST


# By the module that defines a type, since subclasses may be defined anywhere.
_LOCATORS: dict[tuple[str, str], Callable[[Any], str]] = {
    ("torch", "Tensor"): _torch,
    ("numpy", "ndarray"): _host,
    ("onnxruntime.capi.onnxruntime_inference_collection", "OrtValue"): _ort,
}
_PLAIN: frozenset[type] = frozenset({int, float, str, bool, bytes, complex, type(None)})
_known: dict[type, Callable[[Any], str] | None] = dict.fromkeys(_PLAIN)
_MOST_TYPES = 4096


def location(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return where the arguments lie: `ANYWHERE`, `HOST`, or torch's name of a device.

    None if they lie in several places, so that no device can read them all.
    """
    found = ANYWHERE
    for value in args if not kwargs else (*args, *kwargs.values()):
        try:
            locate = _known[type(value)]
        except KeyError:
            locate = _learn(type(value))
        if locate is None:
            continue
        where = locate(value)
        if not where or where == found:
            continue
        if found:
            return None
        found = where
    return found


def reads(device: Device, where: str | None) -> bool:
    """Return whether *device* reads what lies at *where*, as it is."""
    if where == ANYWHERE:
        return True
    if where == HOST:
        return device.reads_host_memory
    return where is not None and device.memory_device.torch_device == canonical_torch_device(where)


def _learn(kind: type) -> Callable[[Any], str] | None:
    locate: Callable[[Any], str] | None = None
    if issubclass(kind, _CONTAINERS):
        locate = _inside
    else:
        for base in kind.__mro__:
            if found := _LOCATORS.get((base.__module__, base.__qualname__)):
                locate = found
                break
    if len(_known) < _MOST_TYPES:  # classes made at run time must not be kept for ever
        _known[kind] = locate
    return locate


def _inside(container: Any) -> str:
    values: Iterable[Any] = container.values() if isinstance(container, dict) else container
    # Arguments in two places at once are told apart below; a container of both reads as neither.
    where = location(tuple(values), {})
    return "nowhere" if where is None else where
