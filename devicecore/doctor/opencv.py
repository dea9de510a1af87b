"""OpenCV whose wheel wants libraries that a bare server does not have."""

from __future__ import annotations

from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.optional import package_dir
from devicecore.ort.libraries import missing_libraries

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "opencv-system-libraries"


def find() -> Finding | None:
    """Return what keeps cv2 from being imported, or that two wheels share its folder."""
    folder = package_dir("cv2")
    if folder is None:
        return None
    wheels = sorted(set(packages_distributions().get("cv2", ())))
    if len(wheels) > 1:
        return Finding(
            "two-opencv-packages",
            "several wheels of OpenCV share one folder, and the one installed last wins",
            ", ".join(wheels),
            f"pip uninstall {' '.join(wheels)} && pip install opencv-python-headless",
        )
    missing = {name for file in _libraries(folder) for name in missing_libraries(file)}
    if not missing:
        return None
    return Finding(
        _NAME,
        "cv2 cannot be imported, since its wheel wants libraries of a desktop system",
        f"{', '.join(wheels)} lacks {', '.join(sorted(missing))}",
        "pip uninstall opencv-python && pip install opencv-python-headless",
    )


def _libraries(folder: Path) -> list[Path]:
    return sorted(folder.glob("cv2*.so"))
