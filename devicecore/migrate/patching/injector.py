"""`PatchInjector`: replaces functions by wrappers, and restores them."""

from __future__ import annotations

import atexit
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from devicecore.migrate.patching.blocks import UsedInBlocks
from devicecore.migrate.patching.import_hooks import Watch
from devicecore.migrate.patching.patch_stack import PATCH_STACKS
from devicecore.migrate.patching.program_line import warn
from devicecore.migrate.patching.referrers import describe_holders, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from devicecore.migrate.patching.patch_stack import Wrapper


class _Patch(NamedTuple):
    owner: Any
    name: str
    make_wrapper: Callable[[Wrapper], Any]

    @property
    def module(self) -> str:
        """The name of the module that the function is in."""
        owner = self.owner
        return str(owner.__module__ if isinstance(owner, type) else owner.__name__)

    def anew(self, module: ModuleType) -> _Patch | None:
        """Return the same patch of what *module*, executed anew, has; None if it has none."""
        owner: Any = module
        if isinstance(self.owner, type):
            for part in self.owner.__qualname__.split("."):
                owner = namespace_of(module).get(part) if owner is module else vars(owner).get(part)
                if not isinstance(owner, type):
                    return None
        return self._replace(owner=owner) if hasattr(owner, self.name) else None


class PatchInjector(UsedInBlocks):
    """Some functions to be patched together, and restored together.

    A function is patched where it is, an attribute of a module or a class, and under every name of
    a module that is bound to it, as ``from cv2 import resize`` binds one. What else holds it is not
    touched; `held_elsewhere` says what that is. Restored are all those places, and the names of
    modules that were bound to a wrapper meanwhile; but nothing that others have replaced since.

    Several injectors may patch the same function, and be applied and restored in any order. A
    module that is reloaded is patched again; what it had before does not come back.

    Wrappers keep the names, documentation, signature and kind of what they stand in for, and are
    pickled by its name. An injector that is still applied when the interpreter exits is restored
    then; until then it stays applied, whether anybody else keeps it or not.

    Examples:
        >>> import math
        >>> def logged(below):
        ...     def wrapper(x):
        ...         print("asked for", x)
        ...         return below(x)
        ...
        ...     return wrapper
        >>> injector = PatchInjector()
        >>> injector.add(math, "sqrt", logged)
        >>> with injector:
        ...     math.sqrt(4.0)
        asked for 4.0
        2.0
        >>> math.sqrt
        <built-in function sqrt>
    """

    __slots__ = ("_patches", "_watches", "_wrappers")

    def __init__(self) -> None:
        super().__init__()
        self._patches: list[_Patch] = []
        self._wrappers: list[Wrapper] = []
        self._watches: dict[str, Watch] = {}

    @property
    def is_applied(self) -> bool:
        """Whether the functions are patched."""
        return len(self._users) > 0

    def add(self, owner: Any, name: str, make_wrapper: Callable[[Wrapper], Any]) -> None:
        """Add one function: now, if the others are patched already, else with them.

        Args:
            owner: The module or the class that has it. What a class inherits is patched for that
                class only.
            name: The attribute.
            make_wrapper: Given a ``Wrapper``, which calls whatever is below, returns the
                wrapper: a function of the same kind as the original, made for this. It must import
                nothing, since other threads may wait for it while they import.

        Raises:
            AttributeError, TypeError: See `apply_all`; if the others are patched already.
        """
        self.add_all([(owner, name, make_wrapper)])

    def add_all(self, patches: Iterable[tuple[Any, str, Callable[[Wrapper], Any]]]) -> None:
        """Add several functions; see `add`. All that is loaded is looked at once for them."""
        new = [_Patch(*patch) for patch in patches]
        with PATCH_STACKS.lock:
            if self.is_applied:
                PATCH_STACKS.put_on(new, self._wrappers)
                for patch in new:
                    self._watch(patch)
            self._patches += new

    def apply_all(self) -> None:
        """Patch all functions or, on an error, none. Applied twice is to be restored twice.

        Raises:
            AttributeError: An owner has no such attribute.
            TypeError: It is a class, cannot be called, or is an attribute of a class that cannot be
                changed; or the wrapper is no function of the same kind.
            Exception: Making a wrapper failed.
        """
        self._begin(object())

    def _begin(self, user: object) -> None:
        for patch in tuple(self._patches):
            # A module may import what it gives only when asked. Not while we hold the lock: another
            # thread may wait for it while it imports the same.
            getattr(patch.owner, patch.name, None)
        try:
            with PATCH_STACKS.lock:
                self._users.add(user)  # from here on there is something to be restored
                if len(self._users) == 1:
                    _applied.add(self)
                    PATCH_STACKS.put_on(self._patches, self._wrappers)
                    for patch in self._patches:
                        self._watch(patch)
        except BaseException:  # an interrupt, too, leaves nothing half done
            if self._users.has(user):
                self._release(user)
            raise

    def restore_all(self) -> None:
        """Put all functions back, once this was called as often as `apply_all`; then do nothing.

        Warns:
            RuntimeWarning: Others have put something else into a place since. It was left there.
        """
        texts = self._release(None)
        if texts:
            warn("; ".join(texts))

    def _release(self, user: object) -> list[str]:
        """Put all functions back if nobody else uses them, and return what could not be."""
        with PATCH_STACKS.lock:
            if len(self._users) > 1:
                self._users.remove(user)
                return []
            return self._restore()  # also if it is not applied: of an interrupt something may be

    def held_elsewhere(self) -> dict[str, list[str]]:
        """Return what still holds the originals and calls them past us, in words, by their names.

        Names of modules are among it where they are left alone, as the private ones of
        ``__main__``. The class that a method is inherited from is not: it is not what was patched.
        """
        with PATCH_STACKS.lock:
            wrappers = tuple(self._wrappers)
            found = describe_holders(
                [wrapper.original for wrapper in wrappers], PATCH_STACKS.holders()
            )
        held: dict[str, list[str]] = {}
        for wrapper, texts in zip(wrappers, found, strict=True):
            owner, _, name = ".".join(wrapper.stack.address).rpartition(".")
            home = f"the attribute {name!r} of the class {owner}"
            if others := [text for text in texts if text != home]:
                held[".".join(wrapper.stack.address)] = others
        return held

    def _restore(self) -> list[str]:
        for watch in self._watches.values():
            watch.remove()
        self._watches.clear()
        texts = PATCH_STACKS.take_off(self._wrappers)
        self._wrappers.clear()
        _applied.discard(self)
        while len(self._users):  # last: until then an interrupt leaves something to be restored
            self._users.remove(None)
        return texts

    def _watch(self, patch: _Patch) -> None:
        name = patch.module
        if name not in self._watches:
            self._watches[name] = Watch(name, partial(self._executed, name))
            self._watches[name].begin()

    def _executed(self, name: str, module: ModuleType) -> None:
        """Patch what a module that was executed anew has now."""
        with PATCH_STACKS.lock:
            there = {each: each.anew(module) for each in self._patches if each.module == name}
            new = [
                each
                for each in there.values()
                if each is not None and not PATCH_STACKS.has(each.owner, each.name, self._wrappers)
            ]
            if self.is_applied and new:
                PATCH_STACKS.put_on(new, self._wrappers, is_anew=True)
        gone = [f"{each.owner.__name__}.{each.name}" for each, now in there.items() if now is None]
        if gone:
            msg = f"{name} was executed anew, and is without {', '.join(gone)}"
            raise LookupError(msg)


class _Applied:
    """The injectors that are applied. They are restored when the interpreter exits."""

    __slots__ = ("_injectors",)

    def __init__(self) -> None:
        self._injectors: list[PatchInjector] = []

    def add(self, injector: PatchInjector) -> None:
        if not self._injectors:
            atexit.register(self._restore)
        self._injectors.append(injector)

    def discard(self, injector: PatchInjector) -> None:
        if injector in self._injectors:
            self._injectors.remove(injector)
        if not self._injectors:
            atexit.unregister(self._restore)

    def _restore(self) -> None:
        with PATCH_STACKS.lock:
            for injector in reversed(tuple(self._injectors)):
                for text in injector._restore():  # noqa: SLF001 - one of us
                    sys.stderr.write(f"devicecore: {text}\n")


_applied: Final = _Applied()
