"""Post-import hooks: callbacks for modules that are imported or reloaded later."""

from __future__ import annotations

import importlib.util
import sys
import threading
from functools import wraps
from importlib.machinery import (
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    NamespaceLoader,
    PathFinder,
)
from typing import TYPE_CHECKING, Any, Final

from devicecore.fork import rearm_after_fork
from devicecore.migrate.patching.program_line import warn
from devicecore.migrate.patching.referrers import namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


EVERY: Final = ""
"""The name of a `Watch` of all modules, but for ours and those written in C."""

_OURS: Final = ("devicecore", "devicecore_factories")
_OF_C: Final = (BuiltinImporter, FrozenImporter, ExtensionFileLoader)


class Watch:
    """What `when_imported` returns: one module's name, and who wants to know of it.

    Attributes:
        name: The module's name, or `EVERY`.
    """

    __slots__ = ("_callback", "_told", "name")

    def __init__(self, name: str, callback: Callable[[ModuleType], object]) -> None:
        self.name: Final = name
        self._callback = callback
        self._told: ModuleType | None = None

    def begin(self) -> None:
        """Call the callback from now on each time that the module has been executed."""
        _hook.add(self)

    def remove(self) -> None:
        """Call nothing any more; twice is once. The last one takes the import hook out."""
        _hook.remove(self)

    def tell(self, module: ModuleType) -> None:
        """Call the callback; its error is a warning, and not the importing program's."""
        self._told = module
        try:
            self._callback(module)
        except Exception as error:  # noqa: BLE001 - whatever it is, the import is not to blame
            about = self.name or module.__name__
            warn(
                f"what was to follow the import of {about} failed: {type(error).__name__}: {error}"
            )

    def tell_if_imported(self) -> None:
        """Call the callback if the module is whole, and nobody has called it meanwhile."""
        module = sys.modules.get(self.name)
        if module is None or module is self._told:
            return
        spec: Any = namespace_of(module).get("__spec__")
        if _is_lazy(module):
            _follow(spec)
        elif getattr(spec, "_initializing", False):
            _hook.tell_later(self)
        else:
            self.tell(module)

    def __repr__(self) -> str:
        return f"<watch of {self.name}>"


def when_imported(name: str, callback: Callable[[ModuleType], object]) -> Watch:
    """Call *callback* with the module called *name* each time that it has been executed.

    That is now, if it is imported already; after its import; and again after each reload. A module
    that is imported lazily is not executed for this. One that is being imported just now is told of
    at the next import of anything after it has become whole.

    The callback runs in the importing thread, which holds the lock of that import. What it raises
    becomes a `RuntimeWarning`.

    Args:
        name: The module's full name, such as ``"albumentations.core.composition"``.
        callback: What to call.

    Returns:
        The watch, whose ``remove()`` ends this.
    """
    watch = watch_imports(name, callback)
    watch.tell_if_imported()
    return watch


def watch_imports(name: str, callback: Callable[[ModuleType], object]) -> Watch:
    """Do what `when_imported` does, but not for what is imported already: only when anew."""
    watch = Watch(name, callback)
    watch.begin()
    return watch


def _is_lazy(module: object) -> bool:
    """Return whether *module* will be executed at the first use of one of its attributes."""
    # The class is private, and importlib.util need not be imported for there to be none.
    return type(module).__module__ == "importlib.util"


class _Hook:
    """A finder that finds nothing itself, but adds a step to the import of watched modules.

    It stands in `sys.meta_path` for as long as there is a watch. Programs that load a module by its
    file ask no finder, but `importlib.util.module_from_spec`, which has the step as long.
    """

    def __init__(self) -> None:
        self._watches: dict[str, list[Watch]] = {}
        # Those whose module was being imported already when they came.
        self._late: list[Watch] = []
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.RLock()  # what is collected meanwhile may come here again
        self._here = _Finding()

    def add(self, watch: Watch) -> None:
        """Tell *watch* of each import of its module from now on."""
        with self._lock:
            self._watches.setdefault(watch.name, []).append(watch)
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
                importlib.util.module_from_spec = _module_from_spec

    def remove(self, watch: Watch) -> None:
        """Tell *watch* nothing any more."""
        with self._lock:
            those = self._watches.get(watch.name, [])
            if watch in those:
                those.remove(watch)
            if watch in self._late:
                self._late.remove(watch)
            if not those and self._watches.pop(watch.name, None) is not None:
                _unfollow(watch.name)
            if not self._watches and self in sys.meta_path:
                sys.meta_path.remove(self)
                if importlib.util.module_from_spec is _module_from_spec:
                    importlib.util.module_from_spec = _MODULE_FROM_SPEC

    def tell_later(self, watch: Watch) -> None:
        """Tell *watch* once its module is whole, as far as another import lets us notice it."""
        with self._lock:
            self._late.append(watch)

    def executed(self, name: str, module: ModuleType) -> None:
        """Tell those who wait for *name*."""
        module = sys.modules.get(name, module)  # it may have put something else into its place
        with self._lock:
            watches = (*self._watches.get(name, ()), *self._watches.get(EVERY, ()))
        for watch in watches:
            watch.tell(module)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find, with our step added; None leaves them to be asked."""
        if self._late:
            with self._lock:
                late, self._late = self._late, []
            for watch in late:
                watch.tell_if_imported()
        # Others do as we do, and would ask us again while we ask them.
        finding = self._here.names
        if not self._is_watched(name) or name in finding:
            return None
        finding.add(name)
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            finding.discard(name)
        if spec is not None:
            self.follow(spec)
        return spec

    def follow(self, spec: ModuleSpec) -> None:
        """Add our step to the import of a module that somebody waits for."""
        is_named = spec.name in self._watches
        if is_named or (self._is_watched(spec.name) and _may_have_classes(spec.loader)):
            _follow(spec)

    def _is_watched(self, name: str) -> bool:
        every = EVERY in self._watches and name.partition(".")[0] not in _OURS
        return every or name in self._watches

    def _found_by_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in tuple(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


class _Finding(threading.local):
    """The names of the modules that this thread is asking the other finders for."""

    def __init__(self) -> None:
        self.names: set[str] = set()


class _FollowedLoader:
    """A loader with a step added. The module itself gets to see the loader it has anywhere else."""

    __slots__ = ("loader",)

    def __init__(self, loader: Any) -> None:
        self.loader: Final = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the loader make the module, where it wants to."""
        create = getattr(self.loader, "create_module", None)
        return None if create is None else create(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, and tell those who wait for it."""
        names = namespace_of(module)
        spec: Any = names["__spec__"]
        if spec.loader is self:
            spec.loader = self.loader
        if names.get("__loader__") is self:
            names["__loader__"] = self.loader
        if isinstance(self.loader, NamespaceLoader):
            names["__file__"] = None  # as it is without a loader that was given
        self.loader.exec_module(module)
        _hook.executed(spec.name, module)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # not there yet, in a copy that is being made
            raise AttributeError(name)
        return getattr(self.loader, name)


def _may_have_classes(loader: Any) -> bool:
    is_of_c = loader in _OF_C or isinstance(loader, _OF_C)
    return not (loader is None or is_of_c)


def _follow(spec: ModuleSpec) -> None:
    """Add our step to the loader of *spec*, unless it cannot take one."""
    loader: Any = spec.loader
    if loader is None and spec.submodule_search_locations is not None:
        find: Any = PathFinder.find_spec
        loader = NamespaceLoader(spec.name, spec.submodule_search_locations, find)
    if hasattr(loader, "exec_module") and not isinstance(loader, _FollowedLoader):
        follower: Any = _FollowedLoader(loader)
        spec.loader = follower


def _unfollow(name: str) -> None:
    """Take our step out of a module that was imported lazily, and not executed since."""
    spec: Any = namespace_of(sys.modules.get(name)).get("__spec__")
    loader = getattr(spec, "loader", None)
    if isinstance(loader, _FollowedLoader):
        spec.loader = loader.loader


_MODULE_FROM_SPEC: Final = importlib.util.module_from_spec


@wraps(_MODULE_FROM_SPEC)
def _module_from_spec(spec: ModuleSpec) -> ModuleType:
    if not isinstance(spec.loader, importlib.util.LazyLoader):  # which has it inside, if anywhere
        _hook.follow(spec)
    return _MODULE_FROM_SPEC(spec)


_hook = _Hook()
