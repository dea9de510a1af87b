"""`ModuleWatches`: tells a migrator when a module is imported that its plan may mean."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.migrate.patching.import_hooks import EVERY, Watch
from devicecore.migrate.patching.referrers import namespace_of
from devicecore.migrate.plan.symbols import has_class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from devicecore.migrate.plan.targets import Resolved


class ModuleWatches:
    """The modules that are waited for, while a migrator is active."""

    def __init__(self) -> None:
        self._look_again: Callable[[ModuleType], None] | None = None
        self._watches: dict[str, Watch] = {}
        self._pending: set[str] = set()
        self._open_names: frozenset[str] = frozenset()

    def begin(
        self, resolved: Resolved, others: Iterable[str], look_again: Callable[[ModuleType], None]
    ) -> None:
        """Wait for what a plan names and is not imported yet, and for *others*.

        Where the plan has bare names, every module may bring the class that one of them means.

        Args:
            resolved: What the plan names.
            others: More modules.
            look_again: Called with a module that has been imported.
        """
        self._look_again = look_again
        self._pending = {each.module for each in resolved.pending if not each.is_loaded}
        self._open_names = resolved.open_names
        callbacks = dict.fromkeys(self._pending.union(others), self._imported)
        if resolved.open_names:
            callbacks[EVERY] = self._imported_any
        elif EVERY in self._watches:
            self._watches.pop(EVERY).remove()
        for name in callbacks.keys() - self._watches.keys():
            self._watches[name] = watch = Watch(name, callbacks[name])
            watch.begin()

    def ask_for_pending(self) -> None:
        """Look at modules that another thread had begun to import before they were watched."""
        for name in tuple(self._pending):
            self._watches[name].tell_if_imported()

    def end(self) -> None:
        """Wait for nothing any more."""
        for watch in self._watches.values():
            watch.remove()
        self._watches.clear()
        self._look_again = None

    def _imported(self, module: ModuleType) -> None:
        if hasattr(sys, "OpenCV_LOADER"):
            return  # of two modules called cv2 this is the first one, of C code, and will not stay
        spec: Any = namespace_of(module).get("__spec__")
        if spec is not None:
            # Its import ends after this; until then its names count as those that may change.
            spec._initializing = False  # noqa: SLF001 - as importlib itself is about to do
        if self._look_again is not None:
            self._look_again(module)

    def _imported_any(self, module: ModuleType) -> None:
        if has_class_of(namespace_of(module), self._open_names):
            self._imported(module)
