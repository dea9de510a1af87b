"""OpenCV's own functions as kernels of the CPU, as they were before anybody patched cv2.

``device.compute("cv2.resize", image, (w, h))`` is ``cv2.resize(image, (w, h))``, whatever ``cv2``
holds by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv import catalog
from devicecore.kernels import Kernel, default_kernels
from devicecore.optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

cv2: Any = require("cv2", extra="vision")

_originals: dict[str, Callable[..., Any]] = {
    name: getattr(cv2, name) for name in dir(cv2) if callable(getattr(cv2, name))
}


def _clahe_apply(
    src: Any, clipLimit: float, tileGridSize: Any, bitShift: int = 0, dst: Any = None
) -> Any:
    """CLAHE_apply(src, clipLimit, tileGridSize[, bitShift[, dst]]) -> dst.

    ``cv2.CLAHE.apply`` of an object with these settings.
    """
    used = _originals["createCLAHE"](clipLimit, tileGridSize)
    if bitShift:
        used.setBitShift(bitShift)
    return used.apply(src, dst)


# A method of OpenCV's, as a function.
_originals["CLAHE_apply"] = _clahe_apply


def original(name: str) -> Callable[..., Any]:
    """Return one of OpenCV's functions as it was before anybody patched it.

    Raises:
        AttributeError: OpenCV has none of that name.
    """
    try:
        return _originals[name]
    except KeyError:
        function: Callable[..., Any] = getattr(cv2, name)
        return function


def _without_device(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(_device: object, /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return run


def _foreign(value: Any) -> str:
    """Return the type of an array among arguments that is none of numpy's, or nothing."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_foreign, value)), "")
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(type(value), "__dlpack__"):
        return ""
    return f"{type(value).__module__}.{type(value).__name__}"


def _supports(_device: object, /, *args: Any, **kwargs: Any) -> bool:
    return not any(map(_foreign, (*args, *kwargs.values())))


def _why_not(_device: object, /, *args: Any, **kwargs: Any) -> str:
    named = {f"argument {place}": value for place, value in enumerate(args, 1)} | kwargs
    foreign = {name: kind for name, value in named.items() if (kind := _foreign(value))}
    return ", ".join(
        f"{name} is a {kind}, which cv2 does not take" for name, kind in foreign.items()
    )


def _register() -> dict[str, Kernel]:
    kernels = {}
    for name, row in sorted(catalog.ROWS.items()):
        run = _without_device(_originals[name])
        for label in ("", "native"):
            kernels[name] = Kernel(
                f"cv2.{name}",
                run,
                device_type="CPU",
                label=label,
                pure=not row.draws,
                # Who asks for cv2 itself gets its own words.
                supports=None if label else _supports,
                why_not=_why_not,
            )
            default_kernels().register(kernels[name])
    return kernels


_kernels = _register()


def native_kernel(name: str) -> Kernel:
    """Return the kernel that is one of OpenCV's own functions, labelled ``"native"``."""
    return _kernels[name]
