"""OpenCV's own functions as kernels of the CPU, as they were before anybody patched cv2.

``device.compute("cv2.resize", image, (w, h))`` is ``cv2.resize(image, (w, h))``, whatever ``cv2``
holds by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2

from devicecore.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_PURE = (
    "boxPoints",
    "copyMakeBorder",
    "cvtColor",
    "dilate",
    "findContours",
    "getPerspectiveTransform",
    "mean",
    "minAreaRect",
    "resize",
    "warpPerspective",
)
# These draw into their first argument, so a second try on another device would draw twice.
_DRAWING = ("fillPoly", "polylines")


def _without_device(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(_device: object, /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return run


for _name in (*_PURE, *_DRAWING):
    kernel(f"cv2.{_name}", device_type="CPU", pure=_name in _PURE)(
        _without_device(getattr(cv2, _name))
    )
