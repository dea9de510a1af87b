"""OpenCV's functions on the current device, with OpenCV's own pixels.

``from devicecore import cv`` in the place of ``import cv2``: the functions listed below run
on the current device; whatever else ``cv2`` has is ``cv2``'s own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.cv import catalog
from devicecore.cv.policy import accept, strict, using
from devicecore.optional import import_own, require

if TYPE_CHECKING:
    from devicecore.cv import signatures
    from devicecore.cv.clahe import createCLAHE
    from devicecore.cv.pipeline import Pipeline
    from devicecore.cv.preprocessing import preprocess
    from devicecore.cv.signatures import *  # noqa: F403 - what OpenCV's functions take


# Where names are that are neither in this file nor among OpenCV's functions of pixels.
_MODULES = {"Pipeline": "pipeline", "createCLAHE": "clahe", "preprocess": "preprocessing"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(import_own(f"devicecore.cv.{_MODULES[name]}"), name)
    else:
        cv2 = require("cv2", extra="vision")  # an emptied one would be told by an absent name only
        if name in catalog.TORCH or name in catalog.HOST:
            value = import_own("devicecore.cv.dispatch").function(name)
        else:
            value = getattr(cv2, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    public = (name for name in dir(require("cv2", extra="vision")) if not name.startswith("_"))
    return sorted({"Pipeline", "accept", "preprocess", "strict", "using", *_MODULES, *public})


__all__ = ["Pipeline", "accept", "preprocess", "strict", "using"]
if TYPE_CHECKING:
    __all__ += ["createCLAHE"]
    __all__ += signatures.__all__
