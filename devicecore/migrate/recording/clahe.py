"""Records `apply` of OpenCV's CLAHE objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.migrate.recording.current import call_on_host, current_recording
from devicecore.migrate.recording.opencv_primitives import RECORDED

if TYPE_CHECKING:
    from collections.abc import Callable


def apply_clahe(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a plane with its contrast equalized, or what stands for it.

    Args:
        original: ``cv2.CLAHE.apply``.
        args: The object, and the plane.
        kwargs: What else it is given.
    """
    recording = current_recording()
    is_plain = len(args) == len(("self", "src")) and not kwargs
    if recording is not None and recording.options is not None and is_plain:
        own, image = args
        shift = own.getBitShift() if hasattr(own, "getBitShift") else 0
        given = (image, own.getClipLimit(), own.getTilesGridSize(), shift)
        found = recording.record(RECORDED["CLAHE_apply"], given, {}, recording.options)
        if found is not None:
            return found
    return call_on_host(original, args, kwargs)
