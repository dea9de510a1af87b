"""Pickles patched functions, and their originals, by an address that always leads to them.

Pickle writes a function as a module and a name, and looks whether that name leads to the function
itself. While a function is patched it leads to the wrapper, so whatever captured the original
before could not be pickled: a `functools.partial`, an attribute of a dataset that goes to a worker.
The same is true of whatever captured a wrapper, once that is gone.

So there is a module below this one for each module that has patched functions, named after it
(``devicecore.migrate.patching.pickling.cv2``). A function is told, for as long as it is patched,
that it comes from there. One that cannot be told and knows no module is found there by pickle's own
search of all modules, which is slow, and runs the code of modules that load lazily. Nothing of that
is a file: this module says that it is a package, and what is imported from below it stands in for
the module that it is named after. So what was pickled is loaded anywhere that devicecore is, also
where nothing was ever patched.
"""

from __future__ import annotations

# Under names that no module has: what is below this one is an attribute of it.
import importlib as _importlib
import itertools as _itertools
import sys as _sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from types import FunctionType

_PREFIX: Final = f"{__name__}."
_NO_DOT: Final = ":"  # instead of the dots in a module's name, so that ours has no parents
_SERIAL: Final = "::"  # before the number of a wrapper
_ENTRY: Final = f"{__file__}.modules"  # there is no such folder: only our finder answers for it

__path__: list[str] = [_ENTRY]


class _Kept:
    """An original that is patched: its own address, what it said of it, and who patches it."""

    __slots__ = ("home", "name", "original", "said", "users")

    def __init__(self, original: Any, home: str, name: str, said: str | None) -> None:
        self.original: Final = original
        self.home: Final = home
        self.name: Final = name
        self.said: Final = said
        self.users: list[object] = []


class Originals:
    """The functions that have a second address.

    One for the process, `ORIGINALS`. It is no thread's to change but that which patches.
    """

    __slots__ = ("_kept", "_numbers", "_wrappers")

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        self._wrappers: WeakValueDictionary[int, FunctionType] = WeakValueDictionary()
        self._numbers = _itertools.count(1)

    def add(self, original: Any, module: str, user: object) -> None:
        """Give *original* a second address, if pickle finds it by its own one.

        Args:
            original: A function that is about to be patched, or is patched already.
            module: The name of a module that it is in, for one that does not know its own.
            user: Who patches it.
        """
        kept = self._kept.get(id(original))
        if kept is None:
            own = getattr(original, "__module__", None)
            home = module if own is None else own
            name: Any = getattr(original, "__qualname__", None)
            if not _leads_to(original, home, name):
                return
            kept = self._kept[id(original)] = _Kept(original, home, name, own)
            _sys.path_importer_cache[_ENTRY] = _finder
            if not _tell(original, _second(home)) and own is None:
                _sys.modules.setdefault(_second(home), _StandIn(_second(home)))
        kept.users.append(user)

    def discard(self, original: Any, user: object) -> None:
        """Take the second address away, once nobody patches it any more; twice is once."""
        kept = self._kept.get(id(original))
        if kept is None:
            return
        kept.users = [each for each in kept.users if each is not user]
        if kept.users:
            return
        if getattr(original, "__module__", None) == _second(kept.home):
            _tell(original, kept.said)
        if all(each.home != kept.home for each in self._kept.values() if each is not kept):
            _sys.modules.pop(_second(kept.home), None)
            globals().pop(_second(kept.home).removeprefix(_PREFIX), None)
        del self._kept[id(original)]

    def address_of(self, original: Any) -> tuple[str, str] | None:
        """Return the module and the name that lead to *original* where it is not patched."""
        kept = self._kept.get(id(original))
        return None if kept is None else (kept.home, kept.name)

    def cover(self, wrapper: FunctionType) -> None:
        """Give a second address to *wrapper*, which its own one does not lead to any more."""
        home: Any = wrapper.__module__
        if isinstance(home, str) and not home.startswith(_PREFIX):
            number = next(self._numbers)
            self._wrappers[number] = wrapper
            wrapper.__module__ = f"{_second(home)}{_SERIAL}{number}"

    def uncover(self, wrapper: FunctionType) -> None:
        """Give *wrapper* its own address back."""
        home: Any = wrapper.__module__
        if isinstance(home, str) and home.startswith(_PREFIX):
            wrapper.__module__ = _home(home)

    def find(self, second: str, path: tuple[str, ...]) -> Any:
        """Return what *path* leads to in the module called *second*.

        Raises:
            AttributeError: There is no such thing.
        """
        home, name = _home(second), ".".join(path)
        if number := second.partition(_SERIAL)[2]:
            wrapper = self._wrappers.get(int(number))
            known = {} if wrapper is None else {wrapper.__qualname__: wrapper}
        else:
            known = {
                kept.name: kept.original for kept in list(self._kept.values()) if kept.home == home
            }
        if name in known:
            return known[name]
        if any(each.startswith(f"{name}.") for each in known):
            return _Space(second, path)
        try:
            found: Any = _importlib.import_module(home)
        except ImportError as error:  # it was there once; pickle, looking everywhere, minds no more
            raise AttributeError(name) from error
        for part in path:
            found = getattr(found, part)
        return found


def _leads_to(original: Any, home: Any, name: Any) -> bool:
    if not isinstance(home, str) or not isinstance(name, str):
        return False
    found = _sys.modules.get(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is original


def _tell(function: Any, home: str | None) -> bool:
    try:
        function.__module__ = home
    except (AttributeError, TypeError):  # made by C code that does not allow it
        return False
    return True


def _second(home: str) -> str:
    return _PREFIX + home.replace(".", _NO_DOT)


def _home(second: str) -> str:
    return second.removeprefix(_PREFIX).partition(_SERIAL)[0].replace(_NO_DOT, ".")


class _StandIn(ModuleType):
    """A module that has the originals of another one, and else what that has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what is asked of modules, such as for their files
            msg = f"module {self.__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return ORIGINALS.find(self.__name__, (name,))


class _Space:
    """Stands in for a class of which a function is patched, on the way to that function."""

    __slots__ = ("_at",)

    def __init__(self, second: str, path: tuple[str, ...]) -> None:
        self._at = (second, path)

    def __getattribute__(self, name: str) -> Any:
        second, path = object.__getattribute__(self, "_at")
        return ORIGINALS.find(second, (*path, name))


class _Finder:
    """Finds any module below this one, if there is the one that it is named after."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how to make it."""
        del target
        return ModuleSpec(name, self) if name.startswith(_PREFIX) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module. The one that it stands in for is there, and so found, before it."""
        _importlib.import_module(_home(spec.name))
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code."""


ORIGINALS: Final = Originals()
_finder: Final[Any] = _Finder()
_sys.path_importer_cache[_ENTRY] = _finder
