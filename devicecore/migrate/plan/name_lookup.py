"""Finds what the keys of a plan name, in the imported modules."""

from __future__ import annotations

import sys
from itertools import chain, product
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from devicecore.errors import PlanError
from devicecore.migrate.patching.static_lookup import ABSENT, is_a, names_of, own, static
from devicecore.migrate.plan.bare_names import BareNames
from devicecore.migrate.plan.keys import ANY, ANY_NUMBER, WILDCARDS, Key
from devicecore.migrate.plan.patchable import check_is_function, check_replaceable
from devicecore.migrate.plan.strategy_modules import check_package, find_functions
from devicecore.migrate.plan.symbols import (
    MAIN,
    NotYetError,
    Symbol,
    ask_for_module,
    find_call_method,
    find_definitions,
    find_home,
    import_module_of,
    is_lazy,
    is_submodule,
    longest_loaded_name,
    no_such_name,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from devicecore.migrate.plan.keys import Segments
    from devicecore.migrate.plan.strategy_modules import Strategies


@frozen
class PatchTarget:
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
        holder = value_at(self.module, owner)
        if holder is ABSENT or static(holder, name) is ABSENT:
            raise PlanError("/".join(self.canonical), "it is not there any more")
        return holder, name


# Methods that others run inside of, in most classes that a plan names without one.
_USUAL_METHODS: Final = ("__call__", "__getitem__", "__iter__", "forward")

Step = tuple[PatchTarget | str, ...]
"""One part of a key: the functions any of which it may be, or a wildcard."""


@frozen
class Meaning:
    """What a key names in what is imported.

    Attributes:
        steps: Its parts.
        module: The module all of whose functions its last part is; empty where it is no module.
        missing: Why some functions of that module are not there yet.
    """

    steps: tuple[Step, ...]
    module: str = ""
    missing: tuple[NotYetError, ...] = ()

    def canonical(self) -> list[Key]:
        """Return the keys for all that it names, in canonical segments."""
        paths = (
            tuple(
                chain.from_iterable(
                    each.canonical if isinstance(each, PatchTarget) else (each,) for each in choice
                )
            )
            for choice in product(*self.steps)
        )
        return [Key(path, self.module) for path in dict.fromkeys(paths)]


class Finder:
    """Finds what segments name, in the modules that are loaded or may be.

    Args:
        allowed: The top-level packages that may be imported.
        registry: Knows which functions of a module can be computed.
        chosen: The classes that bare names were found to mean earlier.

    Attributes:
        bare_names: What bare names mean.
    """

    def __init__(
        self,
        allowed: frozenset[str],
        registry: Strategies,
        chosen: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self._allowed = allowed
        self._registry = registry
        self.bare_names: Final = BareNames(chosen)
        # Functions of C may not know where they live; under whatever names, they are one target.
        self._homeless: dict[int, Symbol] = {}

    def meaning(self, key: Key) -> Meaning:
        """Return what *key* names.

        Raises:
            NotYetError: Something of it is not there yet.
            PlanError: It names nothing, or nothing that can be patched.
        """
        steps: list[Step] = []
        segments = list(reversed(key.pattern))
        cls: Symbol | None = None  # of the method before
        while segments:
            segment = segments.pop()
            if segment in WILDCARDS:
                steps.append((segment,))
                continue
            if key.module and not segments:
                return self._functions_of(self._module_called(key.module), steps)
            is_own = cls is not None and _is_attribute_of(cls, segment)
            spot = (
                self._below(cls, [segment])
                if cls and is_own
                else self._spot(segment, segments, cls)
            )
            if is_a(spot.value, ModuleType) and not segments:
                return self._functions_of(spot, steps)
            others: Iterable[PatchTarget] = ()
            if is_a(spot.value, type):
                cls = spot
                spot = self._below(cls, [_method_after(cls, segments)])
            elif cls and is_own:
                others = self._overrides(cls, segment)
            steps.append((self._target(spot, "".join(segments[-1:])), *others))
        return Meaning(tuple(steps))

    def _target(self, spot: Symbol, following: str = "") -> PatchTarget:
        if is_a(spot.value, ModuleType):
            fix = f"write {spot}.{following}" if following.isidentifier() else ""
            raise PlanError("", f"'{spot}' is a module, which is no frame", fix)
        check_is_function(spot)
        check_replaceable(spot)
        return PatchTarget(spot.module, spot.qualname)

    def _overrides(self, cls: Symbol, name: str) -> Iterator[PatchTarget]:
        """Yield what ``self.name`` is where ``self`` is of a class that is derived from another."""
        heirs, seen = [*type.__subclasses__(cls.value)], set()
        while heirs:
            heir = heirs.pop()
            if heir in seen:
                continue
            seen.add(heir)
            heirs += type.__subclasses__(heir)
            value, at_home = vars(heir).get(name, ABSENT), find_home(heir)
            if at_home is not None and (callable(value) or is_a(value, classmethod)):
                yield self._target(self._below(at_home, [name]))

    def _module_called(self, name: str) -> Symbol:
        try:
            spot = self._spot(name)
        except NotYetError:
            check_package(name, self._registry)
            raise
        if not is_a(spot.value, ModuleType):
            reason = f"'{spot}' is of type {type(spot.value).__name__}, no module"
            raise PlanError("", reason, "name a function, or a method of a class")
        return spot

    def _functions_of(self, module: Symbol, steps: list[Step]) -> Meaning:
        """Return the meaning of a key for all functions of a module that can be computed."""
        if getattr(names_of(module.value).get("__spec__"), "_initializing", False):
            raise NotYetError(module.module, False)
        targets: list[PatchTarget] = []
        missing: list[NotYetError] = []
        for name in find_functions(module.module, self._registry):
            try:
                targets.append(self._target(self._spot(name)))
            except NotYetError as error:
                missing.append(error)
            except PlanError:  # another version of the package does not have it
                continue
        if not targets and missing:
            raise missing[0]
        return Meaning((*steps, tuple(targets)), module.module, tuple(missing))

    def _spot(
        self, segment: str, following: Sequence[str] = (), after: Symbol | None = None
    ) -> Symbol:
        """Return what a segment names.

        Args:
            segment: The segment.
            following: Those after it, the next one last.
            after: The class of the method before it, if any.
        """
        module, colon, qualname = segment.partition(":")
        if colon:
            return self._below(self._module(module), qualname.split("."))
        parts = segment.split(".")
        loaded = longest_loaded_name(parts[:-1])
        if not loaded and parts[0] in names_of(sys.modules.get(MAIN)):
            return self._below(Symbol(MAIN, "", sys.modules[MAIN]), parts)
        if len(parts) == 1:
            return self._class_or_module(segment, following, after)
        start = self._module(loaded or parts[0])
        return self._below(start, parts[start.module.count(".") + 1 :])

    def _class_or_module(self, name: str, following: Sequence[str], after: Symbol | None) -> Symbol:
        """Return the loaded class that a bare name means, or else the module."""

        def check(cls: Symbol) -> None:
            if following[-1:] != [ANY]:
                self._target(self._below(cls, [_method_after(cls, [*following[-1:]])]))

        cls, why = self.bare_names.find(name, check)
        if cls is not None:
            return cls
        if sys.modules.get(name) is not None or name in self._registry.packages:
            return self._module(name)
        if after is None:
            raise NotYetError(MAIN, True, name, (), why)
        names = {each for base in after.value.__mro__[:-1] for each in vars(base)}
        raise NotYetError(MAIN, True, name, tuple(names), no_such_name(after, name).reason)

    def _module(self, name: str) -> Symbol:
        """Return the module of that name, imported if that is allowed."""
        loaded = longest_loaded_name(name.split("."))
        if loaded == name:
            return Symbol(name, "", sys.modules[name])
        if name.partition(".")[0] in self._allowed:
            return Symbol(name, "", import_module_of(name))
        if loaded:
            part = name.removeprefix(f"{loaded}.").partition(".")[0]
            self._below(Symbol(loaded, "", sys.modules[loaded]), [part])  # is there such a one?
        raise NotYetError(name, False)

    def _below(self, spot: Symbol, parts: list[str]) -> Symbol:
        """Return what *parts* name one below the other, in a module or in a class."""
        for part in parts:
            if spot.qualname and not is_a(spot.value, type):
                reason = f"'{spot}' is of type {type(spot.value).__name__}"
                raise PlanError("", reason, f"only modules and classes can hold {part!r}")
            value = static(spot.value, part)
            if not spot.qualname:
                value = self._of_module(spot, part, value)
            elif value is ABSENT:
                raise no_such_name(spot, part)
            spot = self._at_home(spot, part, value)
        return spot

    def _of_module(self, spot: Symbol, part: str, value: Any) -> Any:
        """Return what a module calls *part*, where *value* is what its own names say."""
        spec = names_of(spot.value).get("__spec__")
        if getattr(spec, "_initializing", False):  # what it has now, it may still replace
            raise NotYetError(spot.module, False)
        if value is ABSENT and spot.module.partition(".")[0] in self._allowed:
            value = ask_for_module(spot, part)
        if value is not ABSENT:
            return value
        if spot.module == MAIN:
            raise NotYetError(MAIN, True, part)
        if is_submodule(spot, part):
            raise NotYetError(spot.module + "." + part, False)
        if not is_lazy(spot.value, part):
            raise no_such_name(spot, part)
        # Such modules hand out what lies in modules below them, and may never keep it.
        below = [
            found for found in find_definitions(part) if found.module.startswith(f"{spot.module}.")
        ]
        if len(below) == 1:
            return below[0].value
        raise NotYetError(spot.module, True, part)

    def _at_home(self, spot: Symbol, part: str, value: Any) -> Symbol:
        """Return where *value*, which *spot* calls *part*, is at home; else that it is there."""
        qualname = f"{spot.qualname}.{part}" if spot.qualname else part
        if is_a(value, ModuleType):
            name = own(value, "__name__")
            is_known = sys.modules.get(name) is value
            return Symbol(name if is_known else f"{spot.module}.{part}", "", value)
        if is_a(spot.value, type) and not is_a(value, type):
            return Symbol(spot.module, qualname, value)  # a method stays with the class it is for
        here = Symbol(spot.module, qualname, value)
        return find_home(value) or self._homeless.setdefault(id(value), here)


def _method_after(cls: Symbol, segments: list[str]) -> str:
    """Return which method is meant, and take its name off the *segments* if it is there."""
    following = segments[-1] if segments else ""
    if following == ANY:
        reason = f"a * after the class '{cls}' is any of its methods"
        raise PlanError("", f"{reason}, and only named ones are patched", _instead(cls, segments))
    if following.isidentifier():
        return segments.pop()
    try:
        return find_call_method(cls)
    except PlanError as error:
        raise PlanError("", error.reason, _instead(cls, segments)) from None


def _instead(cls: Symbol, segments: list[str]) -> str:
    """Return what may be meant by a class, and *segments* after it that name no method."""
    rest = [each for each in reversed(segments) if each not in WILDCARDS]
    usual = [name for name in _USUAL_METHODS if static(cls.value, name) is not ABSENT]
    ways = ["/".join((cls.qualname, usual[0], ANY_NUMBER, *rest))] if usual and rest else []
    if rest and static(cls.value, rest[0]) is not ABSENT:
        ways.append("/".join((cls.qualname, *rest)))
    written = " or ".join(map(repr, ways))
    return f"name a method of it, as in {written}" if written else "name a method of it"


def _is_attribute_of(cls: Symbol, name: str) -> bool:
    """Return whether a bare name after a method is one of its class, as ``self`` has it."""
    if name in names_of(sys.modules.get(MAIN)):
        return False
    value = static(cls.value, name)
    return value is not ABSENT and not is_a(value, ModuleType)
