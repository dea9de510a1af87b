"""Frameworks: what devicecore knows of torch, JAX and the others, in one file for each of them.

A file is named as the module that it is about, and has its `Framework` as ``FRAMEWORK``: adding
one adds a file. None of them imports its framework.
"""

from devicecore.frameworks.base.framework import Framework
from devicecore.frameworks.base.lookup import (
    checked_frameworks,
    class_in,
    framework,
    framework_of_arrays,
    known_frameworks,
    loaded,
    name_of_device,
)

__all__ = [
    "Framework",
    "checked_frameworks",
    "class_in",
    "framework",
    "framework_of_arrays",
    "known_frameworks",
    "loaded",
    "name_of_device",
]


def __dir__() -> list[str]:
    return sorted(__all__)
