"""Functions that take arrays and are not recorded: what they are given has to be on the host.

Whoever is written in C refuses a `DeviceArray`, so these get an array of numpy in its place, in
frames that are recorded and nowhere else.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Final

from devicecore.migrate.lazy.current import RECORDING, by_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.migrate.keys import Segments

    Handler = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

PACKAGES: Final = frozenset({"cv2", "numpy", "torch"})
"""The packages that they are in."""


def _contiguous(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if RECORDING.get() is None or len(args) != 1 or kwargs:
        return by_host(original, args, kwargs)
    from devicecore.migrate.lazy.device_array import DeviceArray  # it imports numpy

    return args[0].contiguous() if type(args[0]) is DeviceArray else original(*args)


def _created(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from devicecore.migrate.lazy.clahe import Clahe  # it imports numpy

    return Clahe(original(*args, **kwargs))


_OWN: Mapping[str, Handler] = {
    "numpy.ascontiguousarray": _contiguous,
    "torch.from_numpy": by_host,
    "torch.as_tensor": by_host,
    "torch.tensor": by_host,
    "cv2.createCLAHE": _created,
}


def found(patched: set[Segments]) -> Iterator[tuple[Any, str, Handler]]:
    """Yield where each function is that is not patched yet, its name, and what calls it.

    Args:
        patched: What is patched; what is yielded is added to it.
    """
    for name, handler in _found().items():
        module, _, attribute = name.rpartition(".")
        frame = (f"{module}:{attribute}",)
        if frame not in patched:
            patched.add(frame)
            yield sys.modules[module], attribute, handler


def _found() -> dict[str, Handler]:
    handlers: dict[str, Handler] = {}
    cv2: Any = sys.modules.get("cv2")
    if cv2 is not None and not hasattr(sys, "OpenCV_LOADER"):
        from devicecore.cv import native  # noqa: F401 - it takes OpenCV's own, before ours come

        for attribute, value in vars(cv2).items():
            if type(value) is BuiltinFunctionType:
                handlers[f"cv2.{attribute}"] = by_host
    for name, handler in _OWN.items():
        module, _, attribute = name.rpartition(".")
        if hasattr(sys.modules.get(module), attribute):
            handlers[name] = handler
    return handlers
