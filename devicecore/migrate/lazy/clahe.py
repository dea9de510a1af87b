"""OpenCV's object for contrast, whose calls can be recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.migrate.lazy.current import RECORDING
from devicecore.migrate.lazy.results import on_arrays
from devicecore.migrate.lazy.vision_operations import RECORDED

if TYPE_CHECKING:
    import cv2


class Clahe:
    """Stands for a ``cv2.CLAHE``; what it is not asked to compute is that one's.

    Args:
        settings: OpenCV's object.
    """

    def __init__(self, settings: cv2.CLAHE) -> None:
        self._settings = settings

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # programs ask isinstance before they use it
        return type(self._settings)

    def apply(self, src: Any, dst: Any = None) -> Any:
        """Return a plane with its contrast equalized, or what stands for it."""
        recording, own = RECORDING.get(), self._settings
        if recording is not None and recording.options is not None and dst is None:
            shift = own.getBitShift() if hasattr(own, "getBitShift") else 0
            given = (src, own.getClipLimit(), own.getTilesGridSize(), shift)
            found = recording.record(RECORDED["CLAHE_apply"], given, {}, recording.options)
            if found is not None:
                return found
        return on_arrays(lambda args, _: own.apply(*args), (src, dst), {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # such as what copies ask for before there are settings
            raise AttributeError(name)
        return getattr(self._settings, name)
