"""OpenCV whose wheel wants libraries that a bare server does not have, or two wheels of it."""

from __future__ import annotations

from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.optional import package_dir
from devicecore.optional.faults import package_fault
from devicecore.ort.libraries import missing_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case


def find(case: Case) -> Iterator[Finding]:
    """Yield what keeps cv2 from being imported, or that two wheels share its folder."""
    del case
    folder = package_dir("cv2")
    if folder is None or package_fault("cv2"):  # of which another file tells
        return
    wheels = sorted(set(packages_distributions().get("cv2", ())))
    if len(wheels) > 1:
        yield Finding(
            "two-opencv-packages",
            "several wheels of OpenCV share one folder, and the one installed last wins",
            ", ".join(wheels),
            f"pip uninstall -y {' '.join(wheels)} && pip install opencv-python-headless",
        )
        return
    libraries = sorted(folder.glob("cv2*.so"))
    if wheels and not any(folder.glob("cv2*")):
        yield Finding(
            "emptied-package",
            "cv2 cannot be imported, since its binary is gone",
            f"{folder} has no file cv2*; pip lists {wheels[0]}",
            f"pip install --force-reinstall --no-deps {wheels[0]}",
        )
    missing = {name for file in libraries for name in missing_libraries(file)}
    if missing:
        yield Finding(
            "opencv-system-libraries",
            "cv2 cannot be imported, since its wheel wants libraries of a desktop system",
            f"{', '.join(wheels)} lacks {', '.join(sorted(missing))}",
            "pip uninstall -y opencv-python && pip install opencv-python-headless",
        )
