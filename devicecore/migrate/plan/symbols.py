"""`Symbol`: what a name in a plan refers to, found without running code of the program."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from devicecore.errors import PlanError
from devicecore.migrate.patching.static_lookup import ABSENT, definer, is_a, names_of, own, static

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAIN: Final = "__main__"


class NotYetError(Exception):
    """A name may still come.

    Attributes:
        module: The module that is to have it.
        is_loaded: Whether that is loaded.
        name: The name, where the module is loaded.
        beside: The names of the class that it may be of, if it comes after a method.
        why_not: Why something that is there is not what it names; empty where there is nothing.
    """

    def __init__(
        self,
        module: str,
        is_loaded: bool,
        name: str = "",
        beside: tuple[str, ...] = (),
        why_not: str = "",
    ) -> None:
        self.module = module
        self.is_loaded = is_loaded
        self.name = name
        self.beside = beside
        self.why_not = why_not
        super().__init__(module, is_loaded, name, beside, why_not)


class Symbol(NamedTuple):
    """What a segment of a key names."""

    module: str
    qualname: str
    value: Any

    @property
    def package(self) -> str:
        """The top-level package that has it."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}" if self.qualname else self.module


def find_definitions(name: str) -> Iterator[Symbol]:
    """Yield what is called *name* in a loaded module that defines it."""
    for module_name, module in list(sys.modules.items()):
        value = names_of(module).get(name, ABSENT)
        if value is not ABSENT and own(value, "__module__") == module_name:
            yield Symbol(module_name, name, value)


def is_class_of(value: Any, module: Any) -> bool:
    """Return whether *value* is a class that says it is defined in the module of that name."""
    return is_a(value, type) and own(value, "__module__") == module


def has_class_of(names: Mapping[str, Any], wanted: Iterable[str]) -> bool:
    """Return whether a module with these names defines a class with one of some names."""
    return any(is_class_of(names.get(each), names.get("__name__")) for each in wanted)


def find_call_method(spot: Symbol) -> str:
    """Return the method that runs when an instance of a class is called.

    Where that is everybody's, which calls ``forward`` as torch's ``Module`` does, it is the latter.
    """
    caller, worker = (definer(spot.value, name) for name in ("__call__", "forward"))
    if caller is None:
        raise PlanError("", f"instances of '{spot}' cannot be called", "name a method of it")
    is_overridden = worker is not caller and "forward" in vars(caller)
    return "forward" if is_overridden else "__call__"


def find_home(value: Any) -> Symbol | None:
    """Return where *value* says that it lives, if it is really there."""
    module, qualname = own(value, "__module__"), own(value, "__qualname__")
    is_text = isinstance(module, str) and isinstance(qualname, str)
    if not is_text or value_at(module, qualname) is not value:
        return None
    # The main program has a second name in children that were spawned.
    is_main = sys.modules[module] is sys.modules.get(MAIN)
    return Symbol(MAIN if is_main else module, qualname, value)


def value_at(module: str, qualname: str) -> Any:
    """Return what is there, or `ABSENT`."""
    value: Any = sys.modules.get(module, ABSENT)
    for part in filter(None, qualname.split(".")):
        value = static(value, part)
    return value


def longest_loaded_name(parts: list[str]) -> str:
    """Return the longest name of a loaded module that *parts* start with, or an empty text."""
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if sys.modules.get(name) is not None), "")


def ask_for_module(spot: Symbol, part: str) -> Any:
    """Return what a module, which may be asked and imported from, calls *part*."""
    full = f"{spot.module}.{part}"
    try:
        value = getattr(spot.value, part, ABSENT)
    except ImportError as error:
        raise PlanError("", f"{full!r} cannot be imported: {error}") from error
    return import_module_of(full) if value is ABSENT and is_submodule(spot, part) else value


def import_module_of(name: str) -> ModuleType:
    """Return a module that may be imported."""
    try:
        return import_module(name)
    except ImportError as error:
        raise PlanError("", f"{name!r} cannot be imported: {error}") from error


def is_submodule(package: Symbol, part: str) -> bool:
    """Return whether *part* can be imported from *package*."""
    name = f"{package.module}.{part}"
    is_loaded = sys.modules.get(name) is not None
    return is_loaded or ("__path__" in names_of(package.value) and find_spec(name) is not None)


def is_lazy(module: Any, part: str) -> bool:
    """Return whether *module* may give out *part* when it is asked, which nobody does here."""
    names = names_of(module)
    if "__getattr__" not in names and type(module) is ModuleType:
        return False
    listed = names.get("__all__")
    return part in listed if isinstance(listed, (list, tuple)) else True


def no_such_name(spot: Symbol, part: str) -> PlanError:
    """Return the error for a name that a module or a class does not have."""
    is_class = is_a(spot.value, type)
    owners = spot.value.__mro__[:-1] if is_class else (spot.value,)
    names = sorted({name for owner in owners for name in names_of(owner)})
    near = ", ".join(map(repr, get_close_matches(part, names, n=3)))
    what = "class" if is_class else "module"
    return PlanError("", f"the {what} '{spot}' has no {part!r}", near and f"near are {near}")
