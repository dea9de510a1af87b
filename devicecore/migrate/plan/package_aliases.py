"""Common names of packages that are imported by another name."""

from __future__ import annotations

from typing import Final

_PACKAGES: Final = {
    "cv": "cv2",
    "opencv": "cv2",
    "opencv2": "cv2",
    "opencv_python": "cv2",
    "opencv_contrib_python": "cv2",
    "open_cv": "cv2",
    "pillow": "PIL",
    "pil": "PIL",
    "np": "numpy",
    "sp": "scipy",
    "scikit_image": "skimage",
    "scikit_learn": "sklearn",
    "pytorch": "torch",
    "tv": "torchvision",
    "ta": "torchaudio",
}


def find_package(name: str) -> str:
    """Return the name by which a package is imported that people call *name*; else nothing.

    Examples:
        >>> find_package("OpenCV")
        'cv2'
    """
    return _PACKAGES.get(name.casefold().replace("-", "_"), "")
