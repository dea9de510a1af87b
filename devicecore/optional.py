"""Optional packages: what is installed, learnt without importing it."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from devicecore.errors import MissingDependencyError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

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
    count.
    """
    if module in sys.modules and sys.modules[module] is None:
        return None
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
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


def require(module: str, *, extra: str) -> ModuleType:
    """Import *module*, or say which extra brings it.

    Raises:
        MissingDependencyError: *module* itself is missing. An ImportError from inside an installed
            *module* goes through unchanged, since installing it again would not help.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingDependencyError(module, extra) from error
