"""Keys of a plan that were for no call: a name is written wrong, or the call never came."""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from devicecore.errors import PlanError
from devicecore.migrate.looking import is_a, names_of, own
from devicecore.migrate.replaceable import OURS
from devicecore.migrate.scanning import imported
from devicecore.migrate.spots import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from devicecore.migrate.keys import Key
    from devicecore.migrate.plan import OptimizationPlan
    from devicecore.migrate.registry import StrategyRegistry
    from devicecore.migrate.targets import Pending

_WHAT: Final = "no call of this process, or of its workers with this plan, was for it"

_MOST_NEAR: Final = 3
_MOST_LONGER: Final = 2
_ALIKE: Final = 0.7


def unmatched(
    plan: OptimizationPlan, matched: Collection[Key], missing: Iterable[Pending]
) -> list[str]:
    """Return which keys of a plan were for no call, with their lines, and why that may be.

    Args:
        plan: The plan.
        matched: The keys that were for some call.
        missing: The entries that name what was not there when it was last looked for.
    """
    pending = {each.entry.key: each for each in missing}
    return [
        # That is no error: a plan may be for more programs than this one. But it reads like one.
        str(PlanError(str(entry.key), _WHAT, _why(pending.get(entry.key)), plan.source, entry.line))
        for entry in plan.entries
        if entry.key not in matched
    ]


def doubts(
    missing: Iterable[Pending], registry: StrategyRegistry, *, is_told_of_main: bool
) -> list[str]:
    """Return a warning for each key that nothing can be for, with the names that are near.

    Packages that are installed, and not imported yet, may still be.

    Args:
        missing: The entries that name what is not there yet.
        registry: Knows functions that may be meant.
        is_told_of_main: Whether somebody tells of what the main program defines from now on.
    """
    texts = []
    for each in missing:
        if not each.is_loaded:
            reason, near = _of_package(each, registry)
        elif each.module == MAIN and not is_told_of_main:
            reason, near = _of_name(each, registry)
        else:
            continue
        if reason:
            asked = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            texts.append(f"the key {str(each.entry.key)!r} is for no call: {reason}{asked}")
    return texts


def _of_package(missing: Pending, registry: StrategyRegistry) -> tuple[str, list[str]]:
    package, key = missing.module.partition(".")[0], str(missing.entry.key)
    if package in sys.modules or find_spec(package) is not None:
        return "", []
    reason = f"there is no package {package!r}"
    if package in registry.packages:  # that is its name
        return reason, []
    loaded = {name for name in sys.modules if "." not in name and not name.startswith("_")}
    names = get_close_matches(package, sorted(loaded | registry.packages), n=2)
    whole = rf"(?<![\w.]){re.escape(package)}(?!\w)"
    return reason, [re.sub(whole, name, key, count=1) for name in names]


def _of_name(missing: Pending, registry: StrategyRegistry) -> tuple[str, list[str]]:
    name = missing.name
    known = {each: [each] for each in (*_classes_like(name), *missing.beside, *registry.packages)}
    known |= {each: [each] for each in names_of(sys.modules.get(MAIN)) if not each.startswith("_")}
    for function in registry.names(imported(registry.packages)):
        known.setdefault(function.rpartition(".")[2], []).append(function)
    alike = [name] if name in known else get_close_matches(name, known, n=2, cutoff=_ALIKE)
    near = [full for each in alike for full in sorted(known[each], key=len)]
    return f"neither the program nor a module has a class {name!r} so far", near[:_MOST_NEAR]


def _classes_like(name: str) -> set[str]:
    """Return the names of loaded classes that are about as long."""
    return {
        each
        for module, loaded in list(sys.modules.items())
        if module.partition(".")[0] not in OURS
        for each, value in list(names_of(loaded).items())
        if abs(len(each) - len(name)) <= _MOST_LONGER
        and is_a(value, type)
        and own(value, "__module__") == module
    }


def _why(missing: Pending | None) -> str:
    if missing is None:
        return "all that it names is there"
    if not missing.is_loaded:
        return f"no module {missing.module!r} was imported"
    owner = "the program" if missing.module == MAIN else f"the module {missing.module!r}"
    return f"{owner} had no such name when it was last looked for"
