"""Finds who refers to a function: names of modules, and any other object."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ExtensionFileLoader
from types import CellType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_OURS: Final = ("devicecore", "devicecore_factories")
_NOTHING: Final[dict[str, Any]] = {}

# The module's own dict, past whatever its class does when it is asked for an attribute: modules
# that are imported lazily begin to load then.
_dict_of: Final[Callable[[object], dict[str, Any] | None]] = vars(ModuleType)["__dict__"].__get__


class Binding(NamedTuple):
    """A name in a module.

    Attributes:
        module: The module.
        name: The name in it.
        value: What is bound to it.
    """

    module: ModuleType
    name: str
    value: Any


def find_imported(names: Iterable[str]) -> frozenset[str]:
    """Return those of some modules that are imported to their end."""
    return frozenset(name for name in names if _is_imported(sys.modules.get(name)))


def _is_imported(module: Any) -> bool:
    if module is None:
        return False
    spec: Any = namespace_of(module).get("__spec__")
    return not getattr(spec, "_initializing", False)


def namespace_of(module: object) -> dict[str, Any]:
    """Return the dict of *module*, reading no attribute of it; an empty one if it has none."""
    if not _is_a(module, ModuleType):
        return _NOTHING
    return _dict_of(module) or _NOTHING


def _is_a(value: object, *kinds: type) -> bool:
    """Return what ``isinstance`` does, without asking *value* for its ``__class__``.

    For a lazy object that is a use, and it begins to load.
    """
    return issubclass(type(value), kinds)


def find_bindings(values: Iterable[object]) -> list[Binding]:
    """Return the names in all loaded modules that are bound to one of *values* itself.

    One pass over the dicts of the modules: no attribute is read, nothing is imported. Left out are
    our own modules, and the private names of ``__main__``, which interactive shells keep results
    under.

    Examples:
        >>> import bisect
        >>> found = find_bindings([bisect.insort])
        >>> [each.name for each in found if each.module is bisect]
        ['insort_right', 'insort']
    """
    wanted = {id(value) for value in values}
    found = []
    for module, names in _modules():
        is_main = names.get("__name__") == "__main__"
        for name, value in list(names.items()):
            if id(value) not in wanted or not _is_a(name, str):
                continue
            if not (is_main and name.startswith("_")):
                found.append(Binding(module, name, value))
    return found


def _modules() -> Iterator[tuple[ModuleType, dict[str, Any]]]:
    seen = set()
    for key, module in list(sys.modules.items()):
        names = namespace_of(module)
        if id(module) not in seen and str(key).partition(".")[0] not in _OURS:
            seen.add(id(module))
            yield module, names


# --- what no name of a module leads to ------------------------------------------------------------


def find_holders(original: object, but: Iterable[object] = ()) -> list[str]:
    """Return short texts on what holds *original*; see `describe_holders`."""
    return describe_holders([original], but)[0]


def describe_holders(originals: Sequence[Any], but: Iterable[object] = ()) -> list[list[str]]:
    """Return, for each of *originals*, short texts on what holds it. Changes nothing.

    That is what the garbage collector knows of. It does not know of the variables of running
    functions, nor of what C code holds without telling. Our own modules are left out. It takes a
    few passes over all objects, however many *originals* there are.

    Args:
        originals: Some functions.
        but: What may hold them: that, and the closures and dicts of it, is left out.
    """
    values = tuple(originals)  # get_referrers leaves out the very tuple of its arguments
    allowed = {
        id(values),
        id(originals),
        id(but),
        *(id(part) for each in but for part in _parts(each)),
    }
    modules = _dicts_of_modules()
    # numpy keeps its functions in a set, and calls none of them from there.
    numpys = namespace_of(sys.modules.get("numpy._core.overrides")).get("ARRAY_FUNCTIONS")
    allowed.add(id(numpys))
    found = [
        each
        for each in gc.get_referrers(*values)
        if id(each) not in allowed
        and str(type(each).__module__).partition(".")[0] not in _OURS
        and not (_is_a(each, dict) and _is_left_over(each, modules))
    ]
    ask = [each for each in found if _is_a(each, *_PARTS) and id(each) not in modules]
    owners = _owners(ask)
    closures = [each for cell in ask if _is_a(cell, CellType) for each in owners[id(cell)]]
    owners |= _owners([each for each in closures if _is_a(each, tuple)])
    texts: list[set[str]] = [set() for _ in values]
    for holder in found:
        for part in gc.get_referents(holder):
            for place, value in enumerate(values):
                if part is value:
                    texts[place].update(_texts(holder, value, modules, owners))
    return [sorted(each) for each in texts]


_PARTS: Final = (dict, tuple, CellType)


def _parts(each: Any) -> Iterator[object]:
    yield each
    if _is_a(each, FunctionType):
        yield each.__dict__
        yield from each.__closure__ or ()


def _dicts_of_modules() -> dict[int, str]:
    """Return the name of each module, the first one that it has, by the identity of its dict."""
    found: dict[int, str] = {}  # multiprocessing gives the main program a second name
    for key, module in list(sys.modules.items()):
        names = namespace_of(module)
        if names is not _NOTHING:
            found.setdefault(id(names), str(key))
    return found


def _owners(parts: Sequence[Any]) -> dict[int, list[Any]]:
    """Return what holds each of *parts*, by its identity, without our own variables."""
    owners: dict[int, list[Any]] = {id(part): [] for part in parts}
    if parts:
        for owner in gc.get_referrers(*parts):
            if owner is not parts and not _is_a(owner, FrameType):
                for part in gc.get_referents(owner):
                    if id(part) in owners:
                        owners[id(part)].append(owner)
    return owners


def _texts(
    holder: Any, value: object, modules: dict[int, str], owners: dict[int, list[Any]]
) -> Iterator[str]:
    """Describe one holder of *value*, by names only: showing an object could run its code."""
    around = owners.get(id(holder), [])
    functions = [each for each in around if _is_a(each, FunctionType)]
    if _is_a(holder, dict):
        names = [modules.get(id(each)) for each in (holder, *around)]
        if not any(map(_is_ours, around)) and not {_top(name) for name in names} & set(_OURS):
            for key in [key for key, held in list(holder.items()) if held is value]:
                yield _text_of_key(key, holder, names[0], around)
    elif _is_a(holder, tuple) and functions:
        yield f"a default of {functions[0].__qualname__}"
    elif _is_a(holder, CellType):
        yield from _text_of_closure(around, owners)
    elif _is_a(holder, list, tuple):
        place = next(place for place, held in enumerate(holder) if held is value)
        yield f"item {place} of a {type(holder).__name__} of {len(holder)}"
    elif not _is_a(holder, FrameType):
        yield _text_of_instance(holder, value)


def _text_of_closure(closures: Sequence[Any], owners: dict[int, list[Any]]) -> list[str]:
    """Describe a variable in *closures*, unless those are of functions of ours."""
    inside = [
        each
        for closure in closures
        for each in owners.get(id(closure), [])
        if _is_a(each, FunctionType) and each.__closure__ is closure
    ]
    if any(map(_is_ours, inside)):
        return []
    return [f"the closure of {inside[0].__qualname__}" if inside else "a closure"]


def _is_left_over(holder: dict[Any, Any], modules: dict[int, str]) -> bool:
    """Return whether nobody finds a function by *holder*.

    It is what the body of a class was executed in, or what a module of C code was made with, which
    is not the module that took its place, or the copy of that.
    """
    if id(holder) in modules:
        return False
    spec = holder.get("__spec__", _NOTHING)
    is_of_c_code = spec is None or _is_a(getattr(spec, "loader", None), ExtensionFileLoader)
    return is_of_c_code or ("__qualname__" in holder and "__module__" in holder)


def _text_of_key(
    key: object, holder: dict[Any, Any], module: str | None, around: Sequence[Any]
) -> str:
    name = repr(key) if type(key) is str else f"a {type(key).__name__}"
    if module is not None:
        return f"the name {name} of the module {module}"
    for owner in around:
        if _is_a(owner, ModuleType):
            called = namespace_of(owner).get("__name__")
            return f"the name {name} of a module {called} that is not in sys.modules"
        if _is_a(owner, type):
            return f"the attribute {name} of the class {_name(owner)}"
        if _is_a(owner, FunctionType):
            what = "default" if owner.__kwdefaults__ is holder else "attribute"
            return f"the {what} {name} of {owner.__qualname__}"
        if _has_dict(owner, holder):
            return f"the attribute {name} of a {_name(type(owner))}"
    return f"the key {name} of a dict"


def _is_ours(owner: Any) -> bool:
    """Return whether something is a function of ours, as `devicecore.cv` keeps OpenCV's own."""
    return _is_a(owner, FunctionType) and _top(owner.__module__) in _OURS


def _top(module: str | None) -> str:
    return str(module).partition(".")[0]


def _text_of_instance(holder: Any, value: object) -> str:
    kind = type(holder)
    if _is_a(holder, FunctionType):
        return f"the function {holder.__qualname__}"
    # Python keeps the attributes of most instances without a dict, and makes one only when asked.
    if kind.__dictoffset__ and kind.__module__ != "functools":
        for name, held in list(object.__getattribute__(holder, "__dict__").items()):
            if held is value:
                return f"the attribute {name!r} of a {_name(kind)}"
    return f"a {_name(kind)}"


def _has_dict(owner: Any, holder: dict[Any, Any]) -> bool:
    if not type(owner).__dictoffset__:
        return False
    return object.__getattribute__(owner, "__dict__") is holder


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
