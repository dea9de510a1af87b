"""`createCLAHE`: OpenCV's object, computing on the current device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.cv.dispatch import function
from devicecore.cv.native import original

if TYPE_CHECKING:
    import cv2


class CLAHE:
    """OpenCV's object for the equalization of tiles up to a limit.

    What it is not asked to compute, such as its settings, is the one of OpenCV.

    Args:
        settings: OpenCV's object.
    """

    def __init__(self, settings: cv2.CLAHE) -> None:
        self._settings = settings

    def apply(self, src: Any, dst: Any = None) -> Any:
        """Return an image, or a batch of them, with its contrast equalized.

        Args:
            src: One plane of bytes or of uint16, or several.
            dst: What the result is written into.
        """
        own = self._settings
        shift = own.getBitShift() if hasattr(own, "getBitShift") else 0
        limit, grid = own.getClipLimit(), own.getTilesGridSize()
        return function("CLAHE_apply")(src, limit, grid, shift, dst)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # such as what copies ask for before there are settings
            raise AttributeError(name)
        return getattr(self._settings, name)


def createCLAHE(*args: Any, **kwargs: Any) -> CLAHE:
    """Return a `CLAHE`; the arguments are ``cv2.createCLAHE``'s."""
    return CLAHE(original("createCLAHE")(*args, **kwargs))
