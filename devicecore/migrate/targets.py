"""Targets: the functions that the keys of a plan name, found in what the program has imported."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attrs import frozen

from devicecore.errors import PlanError
from devicecore.errors.base import listing
from devicecore.migrate.keys import ANY, ANY_NUMBER, WILDCARDS, Key, first_tie
from devicecore.migrate.looking import ABSENT, definer, is_a, names_of, own, static
from devicecore.migrate.plan import tied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from devicecore.migrate.keys import Segments
    from devicecore.migrate.plan import OptimizationPlan, PlanEntry

MAIN: Final = "__main__"


@frozen
class Target:
    """A function that can be patched: one of a module, or a method of a class.

    Attributes:
        module: The name of the module that holds it.
        qualname: Its name in there; a method's after that of its class and a dot.
    """

    module: str
    qualname: str

    @property
    def canonical(self) -> Segments:
        """Its segments in a path: ``("cv2:resize",)``, or ``("module:Class", "method")``."""
        owner, _, name = self.qualname.rpartition(".")
        return (f"{self.module}:{owner}", name) if owner else (f"{self.module}:{name}",)

    def holder(self) -> tuple[Any, str]:
        """Return the module, or the class which may inherit it, and its name there.

        Raises:
            PlanError: It is not there any more.
        """
        owner, _, name = self.qualname.rpartition(".")
        holder = _at(self.module, owner)
        if holder is ABSENT or static(holder, name) is ABSENT:
            raise PlanError("/".join(self.canonical), "it is not there any more")
        return holder, name


@frozen
class Located:
    """An entry whose functions were all found.

    Attributes:
        entry: What the plan says.
        key: The entry's key in canonical segments, as paths have them.
    """

    entry: PlanEntry
    key: Key


@frozen
class Wanted:
    """A function that has to be patched.

    Attributes:
        target: The function.
        leaf_of: The entries whose calls it is.
        inner_of: The entries that have it as a frame around their calls.
    """

    target: Target
    leaf_of: tuple[PlanEntry, ...]
    inner_of: tuple[PlanEntry, ...]


@frozen
class Pending:
    """An entry that names something that is not there yet.

    Attributes:
        entry: What the plan says.
        module: The module that has to be imported first; then another one may be missing.
        is_loaded: Whether that module is there already, so that no import announces the name: it is
            the main program, or a module that loads things when it is asked for them.
    """

    entry: PlanEntry
    module: str
    is_loaded: bool


@frozen
class Resolved:
    """What a plan means in what is imported now.

    Attributes:
        entries: Those whose functions were all found.
        targets: The functions that they name, each once.
        pending: The other entries.
    """

    entries: tuple[Located, ...]
    targets: tuple[Wanted, ...]
    pending: tuple[Pending, ...]


def resolve(plan: OptimizationPlan, allow_imports: Iterable[str] = ()) -> Resolved:
    """Find the functions that *plan* names; ask again when more is imported.

    A segment is ``module:qualname``; a dotted name, whose first parts are an imported module; a
    method, if it comes after a class; a name of the main program; or, after a method, another one
    of its class. A bare name that is none of those is the class of that name that is defined in an
    imported module. A class without a method stands for its instances being called.

    Args:
        plan: The plan.
        allow_imports: The top-level packages that may be imported for it.

    Raises:
        PlanError: A name means nothing or more than one thing, an import failed, or two keys turn
            out to be equally good for the same calls.
    """
    allowed = (allow_imports,) if isinstance(allow_imports, str) else allow_imports
    finder = _Finder(frozenset(allowed))
    located, pending = [], []
    asked: dict[Target, tuple[dict[Key, PlanEntry], dict[Key, PlanEntry]]] = {}
    for entry in plan.entries:
        try:
            frames = tuple(finder.frames(entry.key))
        except _NotYetError as missing:
            pending.append(Pending(entry, *missing.args))
            continue
        except PlanError as error:
            raise error.at(plan.source, entry.line, str(entry.key)) from error.__cause__
        parts = (frame.canonical if isinstance(frame, Target) else (frame,) for frame in frames)
        located.append(Located(entry, Key(tuple(chain.from_iterable(parts)))))
        last = next((frame for frame in reversed(frames) if frame != ANY_NUMBER), None)
        for frame in frames:
            if isinstance(frame, Target):
                leaf_of, inner_of = asked.setdefault(frame, ({}, {}))
                (leaf_of if frame is last else inner_of)[entry.key] = entry
    if (tie := first_tie(located)) is not None:
        raise tied(tie[0].entry, tie[1].entry, tie[2], plan.source)
    targets = (
        Wanted(target, tuple(leaf_of.values()), tuple(inner_of.values()))
        for target, (leaf_of, inner_of) in asked.items()
    )
    return Resolved(tuple(located), tuple(targets), tuple(pending))


class _NotYetError(Exception):
    """A name may still come; says of which module, and whether that is loaded."""


class _Spot(NamedTuple):
    """Something that a segment names."""

    module: str
    qualname: str
    value: Any

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}" if self.qualname else self.module


class _Finder:
    """Finds what segments name, in the modules that are loaded or may be."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed
        # Functions of C may not know where they live; under whatever names, they are one target.
        self._homeless: dict[int, _Spot] = {}

    def frames(self, key: Key) -> Iterator[Target | str]:
        """Yield the functions that *key* names, and the wildcards between them."""
        segments = list(reversed(key.pattern))
        cls: _Spot | None = None  # of the method before
        while segments:
            segment = segments.pop()
            if segment in WILDCARDS:
                yield segment
                continue
            is_own = cls is not None and _is_method_of(cls, segment)
            spot = self._below(cls, [segment]) if cls and is_own else self._spot(segment)
            if is_a(spot.value, type):
                cls = spot
                following = segments[-1] if segments else ""
                if following == ANY:
                    reason = f"a * after the class '{spot}' is any of its methods"
                    raise PlanError("", reason, "name the method: only named ones are patched")
                name = segments.pop() if following.isidentifier() else _called_as(spot)
                spot = self._below(spot, [name])
            if not (callable(spot.value) or is_a(spot.value, classmethod)):
                raise PlanError("", f"'{spot}' is of type {type(spot.value).__name__}, no function")
            yield Target(spot.module, spot.qualname)

    def _spot(self, segment: str) -> _Spot:
        module, colon, qualname = segment.partition(":")
        if colon:
            return self._below(self._module(module), qualname.split("."))
        parts = segment.split(".")
        loaded = _longest_loaded(parts[:-1])
        if not loaded and parts[0] in names_of(sys.modules.get(MAIN)):
            return self._below(_Spot(MAIN, "", sys.modules[MAIN]), parts)
        if len(parts) == 1:
            return _class_called(segment)
        start = self._module(loaded or parts[0])
        return self._below(start, parts[start.module.count(".") + 1 :])

    def _module(self, name: str) -> _Spot:
        """Return the module of that name, imported if that is allowed."""
        loaded = _longest_loaded(name.split("."))
        if loaded == name:
            return _Spot(name, "", sys.modules[name])
        if name.partition(".")[0] in self._allowed:
            try:
                return _Spot(name, "", import_module(name))
            except ImportError as error:
                raise PlanError("", f"{name!r} cannot be imported: {error}") from error
        if loaded:
            part = name.removeprefix(f"{loaded}.").partition(".")[0]
            self._below(_Spot(loaded, "", sys.modules[loaded]), [part])  # is there such a one?
        raise _NotYetError(name, False)

    def _below(self, spot: _Spot, parts: list[str]) -> _Spot:
        """Return what *parts* name one below the other, in a module or in a class."""
        for part in parts:
            if spot.qualname and not is_a(spot.value, type):
                reason = f"'{spot}' is of type {type(spot.value).__name__}"
                raise PlanError("", reason, f"only modules and classes can hold {part!r}")
            value = static(spot.value, part)
            if not spot.qualname:
                value = self._of_module(spot, part, value)
            elif value is ABSENT:
                raise _no_such(spot, part)
            spot = self._at_home(spot, part, value)
        return spot

    def _of_module(self, spot: _Spot, part: str, value: Any) -> Any:
        """Return what a module calls *part*, where *value* is what its own names say."""
        spec = names_of(spot.value).get("__spec__")
        if getattr(spec, "_initializing", False):  # what it has now, it may still replace
            raise _NotYetError(spot.module, False)
        if value is ABSENT and spot.module.partition(".")[0] in self._allowed:
            value = _asked_for(spot, part)
        if value is not ABSENT:
            return value
        if spot.module == MAIN:
            raise _NotYetError(MAIN, True)
        if _is_submodule(spot, part):
            raise _NotYetError(spot.module + "." + part, False)
        if not _is_lazy(spot.value, part):
            raise _no_such(spot, part)
        # Such modules hand out what lies in modules below them, and may never keep it.
        below = [found for found in _defined(part) if found.module.startswith(f"{spot.module}.")]
        if len(below) == 1:
            return below[0].value
        raise _NotYetError(spot.module, True)

    def _at_home(self, spot: _Spot, part: str, value: Any) -> _Spot:
        """Return where *value*, which *spot* calls *part*, is at home; else that it is there."""
        qualname = f"{spot.qualname}.{part}" if spot.qualname else part
        if is_a(value, ModuleType):
            name = own(value, "__name__")
            is_known = sys.modules.get(name) is value
            return _Spot(name if is_known else f"{spot.module}.{part}", "", value)
        if is_a(spot.value, type) and not is_a(value, type):
            return _Spot(spot.module, qualname, value)  # a method stays with the class it is for
        here = _Spot(spot.module, qualname, value)
        return _home(value) or self._homeless.setdefault(id(value), here)


def _class_called(name: str) -> _Spot:
    """Return the only loaded class of that name."""
    classes = {id(found.value): found for found in _defined(name) if is_a(found.value, type)}
    if not classes:
        raise _NotYetError(MAIN, True)
    if len(classes) > 1:
        which = listing(str(found) for found in classes.values())
        raise PlanError("", f"there are {len(classes)} classes {name!r}", f"write one of {which}")
    return classes.popitem()[1]


def _defined(name: str) -> Iterator[_Spot]:
    """Yield what is called *name* in a loaded module that defines it."""
    for module_name, module in list(sys.modules.items()):
        value = names_of(module).get(name, ABSENT)
        if value is not ABSENT and own(value, "__module__") == module_name:
            yield _Spot(module_name, name, value)


def _is_method_of(cls: _Spot, name: str) -> bool:
    """Return whether a bare name after a method is another one of its class, as ``self`` has it."""
    if name in names_of(sys.modules.get(MAIN)):
        return False
    found = static(cls.value, name)
    return callable(found) or is_a(found, classmethod)


def _called_as(spot: _Spot) -> str:
    """Return the method that runs when an instance of a class is called.

    Where that is everybody's, which calls ``forward`` as torch's ``Module`` does, it is the latter.
    """
    caller, worker = (definer(spot.value, name) for name in ("__call__", "forward"))
    if caller is None:
        raise PlanError("", f"instances of '{spot}' cannot be called", "name a method of it")
    is_overridden = worker is not caller and "forward" in vars(caller)
    return "forward" if is_overridden else "__call__"


def _home(value: Any) -> _Spot | None:
    """Return where *value* says that it lives, if it is really there."""
    module, qualname = own(value, "__module__"), own(value, "__qualname__")
    is_text = isinstance(module, str) and isinstance(qualname, str)
    if not is_text or _at(module, qualname) is not value:
        return None
    # The main program has a second name in children that were spawned.
    is_main = sys.modules[module] is sys.modules.get(MAIN)
    return _Spot(MAIN if is_main else module, qualname, value)


def _at(module: str, qualname: str) -> Any:
    value: Any = sys.modules.get(module, ABSENT)
    for part in filter(None, qualname.split(".")):
        value = static(value, part)
    return value


def _longest_loaded(parts: list[str]) -> str:
    """Return the longest name of a loaded module that *parts* start with, or an empty text."""
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if sys.modules.get(name) is not None), "")


def _asked_for(spot: _Spot, part: str) -> Any:
    """Return what a module, which may be asked and imported from, calls *part*."""
    full = f"{spot.module}.{part}"
    try:
        value = getattr(spot.value, part, ABSENT)
        return import_module(full) if value is ABSENT and _is_submodule(spot, part) else value
    except ImportError as error:
        raise PlanError("", f"{full!r} cannot be imported: {error}") from error


def _is_submodule(package: _Spot, part: str) -> bool:
    """Return whether *part* can be imported from *package*."""
    name = f"{package.module}.{part}"
    is_loaded = sys.modules.get(name) is not None
    return is_loaded or ("__path__" in names_of(package.value) and find_spec(name) is not None)


def _is_lazy(module: Any, part: str) -> bool:
    """Return whether *module* may give out *part* when it is asked, which nobody does here."""
    names = names_of(module)
    if "__getattr__" not in names and type(module) is ModuleType:
        return False
    listed = names.get("__all__")
    return part in listed if isinstance(listed, (list, tuple)) else True


def _no_such(spot: _Spot, part: str) -> PlanError:
    """Return the error for a name that a module or a class does not have."""
    is_class = is_a(spot.value, type)
    owners = spot.value.__mro__ if is_class else (spot.value,)
    names = sorted({name for owner in owners for name in names_of(owner)})
    near = ", ".join(map(repr, get_close_matches(part, names, n=3)))
    what = "class" if is_class else "module"
    return PlanError("", f"the {what} '{spot}' has no {part!r}", near and f"near are {near}")
