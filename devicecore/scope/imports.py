"""Frameworks that are imported inside of a scope: it applies to them as soon as they are whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.frameworks.base.lookup import frameworks_with_default, known_frameworks
from devicecore.scope.adapters import imported

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _ImportFinder:
    """A finder that finds nothing itself, but adds a step to the import of a framework.

    It adds it to the one loader object that was found: the module keeps the loader it has anywhere
    else, and importing anything else costs one look into a set.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find."""
        if name not in known_frameworks() or name not in frameworks_with_default():
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _add_step(spec.loader, name)
                return spec
        return None


def _add_step(loader: Any, name: str) -> None:
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        imported(name)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader with slots, or a class: the next scope will find the module
        return


_finder = _ImportFinder()


def watch_imports() -> None:
    """Notice from now on when a framework is imported; twice is once."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
