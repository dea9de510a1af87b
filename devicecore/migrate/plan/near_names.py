"""Suggests names for a misspelled name in a plan."""

from __future__ import annotations

import sys
from collections import defaultdict
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Final

from devicecore.migrate.patching.referrers import find_imported
from devicecore.migrate.patching.static_lookup import names_of
from devicecore.migrate.plan.bare_names import is_programs
from devicecore.migrate.plan.package_aliases import find_package
from devicecore.migrate.plan.patchable import OURS
from devicecore.migrate.plan.symbols import MAIN, is_class_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devicecore.migrate.plan.strategy_modules import Strategies

_NEVER: Final = frozenset({*OURS, *sys.stdlib_module_names})
_MOST: Final = 2
_ALIKE: Final = 0.7
_CLOSELY: Final = 0.8
_LESS: Final = 0.1
_SHORT: Final = 5
_LONG: Final = 6


class NearNames:
    """Finds near names; what is loaded is looked at once, for all names of a plan.

    Args:
        registry: Knows functions that may be meant.
    """

    def __init__(self, registry: Strategies) -> None:
        self._registry = registry

    def of_package(self, name: str) -> list[str]:
        """Return the packages that may be meant by *name*, which none is called."""
        packages = self._registry.packages
        if (known := find_package(name)) or name in packages:
            return [known] if known else []
        loaded = {name for name in sys.modules if "." not in name and not name.startswith("_")}
        return _like(name, {each: [each] for each in loaded | packages})

    def beside(self, name: str, attributes: Iterable[str]) -> list[str]:
        """Return the attributes of a class that may be meant by *name*, or names of the program."""
        own = names_of(sys.modules.get(MAIN))
        return _like(name, {each: [each] for each in (*attributes, *own)})

    def of(self, name: str) -> list[str]:
        """Return what may be meant by a bare name: the program's own, or else what others have."""
        if known := find_package(name):
            return [known]
        if name in self._functions and name not in self._own:
            return self._functions[name][:_MOST]
        if len(name) < _SHORT:  # any two functions are alike then
            return _like(name, self._own)
        others = self._classes.get(name[:1].casefold(), {})
        return _like(name, {**others, **self._functions, **self._own})

    @cached_property
    def _own(self) -> dict[str, list[str]]:
        """What the program has, and the packages of functions with a strategy."""
        own = {each for each in names_of(sys.modules.get(MAIN)) if not each.startswith("_")}
        own.update(*(names for module, names in self._by_module.items() if is_programs(module)))
        return {each: [each] for each in own | self._registry.packages}

    @cached_property
    def _functions(self) -> dict[str, list[str]]:
        """Functions with a strategy, by their last names."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for function in self._registry.names(find_imported(self._registry.packages)):
            if "._" not in function:
                found[function.rpartition(".")[2]].append(function)
        return {each: sorted(full, key=len) for each, full in found.items()}

    @cached_property
    def _classes(self) -> Mapping[str, Mapping[str, list[str]]]:
        """The public classes of others, by their first letter: few misspell that."""
        found: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
        for module, names in self._by_module.items():
            for name in names if "._" not in module else ():
                found[name[0].casefold()][name] = [name]
        return found

    @cached_property
    def _by_module(self) -> dict[str, list[str]]:
        """The public names of classes in loaded modules."""
        return {
            module: [
                name
                for name, value in list(names_of(loaded).items())
                if is_class_of(value, module) and not name.startswith("_")
            ]
            for module, loaded in list(sys.modules.items())
            if module.partition(".")[0] not in _NEVER
        }


def _like(name: str, known: Mapping[str, list[str]]) -> list[str]:
    """Return the full names of those that are like *name*, the most alike first."""
    folded: defaultdict[str, list[str]] = defaultdict(list)
    for each, full in known.items():
        folded[each.casefold()] += full
    for each in folded:  # whoever wrote it did not mean it to be another
        folded[each] = [full for full in folded[each] if full != name]
    wanted = name.casefold()
    for full in folded.values():  # functions are written small, and classes are not
        full.sort(key=lambda one: one.rpartition(".")[2][:1].islower() != name[:1].islower())
    if wanted in folded:
        return folded[wanted][:_MOST]
    near = get_close_matches(wanted, folded, _MOST, _ALIKE if len(name) >= _LONG else _CLOSELY)
    alike = {each: SequenceMatcher(None, each, wanted).ratio() for each in near}
    best = max(alike.values(), default=0.0)
    return [full for each in near if alike[each] > best - _LESS for full in folded[each]][:_MOST]
