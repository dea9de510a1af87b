"""OpenCV's functions on the current device, with OpenCV's own pixels.

``from devicecore import cv`` in the place of ``import cv2``: the functions listed below run
on the current device; whatever else ``cv2`` has is ``cv2``'s own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from devicecore.cv import catalog
from devicecore.cv.policy import accept, strict, using

if TYPE_CHECKING:
    from cv2 import *  # noqa: F403 - the same names, with the same signatures

    from devicecore.cv.preprocessing import preprocess


def __getattr__(name: str) -> Any:
    if name == "preprocess":
        found = import_module("devicecore.cv.preprocessing").preprocess
    elif name == "createCLAHE":
        found = import_module("devicecore.cv.clahe").createCLAHE
    elif name in catalog.TORCH or name in catalog.HOST:
        found = import_module("devicecore.cv.calling").function(name)
    else:
        found = getattr(import_module("cv2"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(import_module("cv2"))})


__all__ = ["accept", "preprocess", "strict", "using"]
