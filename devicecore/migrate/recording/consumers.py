"""Functions that are not recorded, but take arrays: they get those on the host.

Whoever is written in C refuses a `LazyArray`, so these get an array of numpy in its place, in
frames that are recorded and nowhere else.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Final

from devicecore.migrate.patching.referrers import find_imported
from devicecore.migrate.recording.current import OPEN, RECORDING, call_on_host, current_recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.migrate.plan.keys import Segments

    Handler = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

PACKAGES: Final = frozenset({"PIL.Image", "cv2", "numpy", "torch"})
"""The modules that they are in."""


def _contiguous(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    is_plain = len(args) == 1 and not kwargs
    if is_plain and _is_recorded(args[0]):
        return args[0].contiguous()
    return call_on_host(original, args, kwargs)


def _is_recorded(value: Any) -> bool:
    if not OPEN and RECORDING.get() is None:
        return False
    from devicecore.migrate.recording.lazy_array import LazyArray  # it imports numpy

    return type(value) is LazyArray and not value.is_on_host


def _equalized(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if RECORDING.get() is None:
        return call_on_host(original, args, kwargs)
    from devicecore.migrate.recording.clahe import apply_clahe  # it imports numpy

    return apply_clahe(original, args, kwargs)


def _as_tensor(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a tensor of an array: in a sample that is only recorded, what stands for one."""
    frame = current_recording()
    if frame is not None and frame.device is None and len(args) == 1 and _is_recorded(args[0]):
        from devicecore.migrate.recording import recorded_tensor

        made = (
            recorded_tensor.from_copy
            if original.__name__ == "tensor"
            else recorded_tensor.from_array
        )
        dtype = kwargs.get("dtype")
        found = made(args[0]) if not kwargs.keys() - {"dtype"} else None
        found = (
            recorded_tensor.cast_tensor(found, dtype)
            if found is not None and dtype is not None
            else found
        )
        if found is not None:
            return found
    return call_on_host(original, args, kwargs)


def _drawn(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from devicecore.migrate.recording.opencv_random import draw

    return draw(original, args, kwargs)


def _seeded(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from devicecore.migrate.recording.opencv_random import seed

    return seed(original, args, kwargs)


_OWN: Mapping[str, Handler] = {
    "numpy.ascontiguousarray": _contiguous,
    "torch.asarray": _as_tensor,
    "torch.from_numpy": _as_tensor,
    "torch.as_tensor": _as_tensor,
    "torch.tensor": _as_tensor,
    "cv2.CLAHE.apply": _equalized,
    "PIL.Image.fromarray": call_on_host,
    "cv2.kmeans": _drawn,
    "cv2.randShuffle": _drawn,
    "cv2.randn": _drawn,
    "cv2.randu": _drawn,
    "cv2.setRNGSeed": _seeded,
}


def find_consumers(patched: set[Segments]) -> Iterator[tuple[Any, str, Handler]]:
    """Yield where each function is that is not patched yet, its name, and what calls it.

    Args:
        patched: What is patched; what is yielded is added to it.
    """
    for name, handler in _found().items():
        owner, _, attribute = name.rpartition(".")
        frame = (f"{owner}:{attribute}",)
        if frame not in patched:
            patched.add(frame)
            yield _named(owner), attribute, handler


def _named(name: str) -> Any:
    """Return a module that is imported, or a class in one; None if there is none."""
    if name in sys.modules:
        return sys.modules[name]
    owner, _, attribute = name.rpartition(".")
    return getattr(_named(owner), attribute, None) if owner else None


def _found() -> dict[str, Handler]:
    handlers: dict[str, Handler] = {}
    cv2: Any = sys.modules.get("cv2")
    if find_imported(["cv2"]) and not hasattr(sys, "OpenCV_LOADER"):
        from devicecore.cv import native  # noqa: F401 - it takes OpenCV's own, before ours come

        for attribute, value in vars(cv2).items():
            if type(value) is BuiltinFunctionType:
                handlers[f"cv2.{attribute}"] = call_on_host
    for name, handler in _OWN.items():
        owner, _, attribute = name.rpartition(".")
        if hasattr(_named(owner), attribute):
            handlers[name] = handler
    return handlers
