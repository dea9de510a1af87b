"""What is installed, learnt without importing it."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Packages whose names programs take for files of their own: one of these is never a single file.
FRAMEWORKS = frozenset(
    {"cv2", "jax", "numpy", "onnxruntime", "paddle", "tensorflow", "torch", "torchvision"}
)

# Where a package that generates its version writes it, in order of trust.
_VERSION_FILES = ("version.py", "_version.py", "__init__.py")
_VERSION_LINE = re.compile(
    r"""^(?:__version__|version)\s*(?::\s*\w+\s*)?=\s*["']([^"']+)["']""", re.MULTILINE
)


def installed(module: str) -> bool:
    """Return whether *module* can be found; nothing of it is imported."""
    return package_dir(module) is not None


def package_dir(module: str) -> Path | None:
    """Return the folder of the top-level package *module*, or None where it is not installed.

    A folder without an ``__init__.py`` is what an uninstalled package leaves behind, so it does not
    count; nor does a single file that has the name of a framework.
    """
    if module in sys.modules and sys.modules[module] is None:
        return None
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    is_file = spec.submodule_search_locations is None and spec.origin.endswith(".py")
    if is_file and module in FRAMEWORKS:
        return None
    from pathlib import Path  # late: it costs a twentieth of a cold start

    return Path(spec.origin).parent


def version_of(module: str) -> str | None:
    """Return the version that *module* states in its own files; nothing of it is imported."""
    folder = package_dir(module)
    if folder is None:
        return None
    for name in _VERSION_FILES:
        try:
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if found := _VERSION_LINE.search(text):
            return found[1]
    return None
