"""Plan keys that matched no call: misspelled, or never called."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from devicecore.errors import PlanError
from devicecore.migrate.plan.near_names import NearNames
from devicecore.migrate.plan.symbols import MAIN
from devicecore.migrate.plan.targets import resolve

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from devicecore.migrate.plan.keys import Key
    from devicecore.migrate.plan.optimization_plan import OptimizationPlan, PlanEntry
    from devicecore.migrate.plan.strategy_modules import Strategies
    from devicecore.migrate.plan.targets import Pending, Resolved

_WHAT: Final = "no call of this process, or of its workers with this plan, was for it"
_LATER: Final = "what it names came later, and no import told of it; refresh() looks for it again"


def find_unmatched(
    plan: OptimizationPlan,
    matched: Collection[Key],
    found: Resolved | None,
    registry: Strategies,
) -> list[str]:
    """Return which keys of a plan were for no call, with their lines, and why that may be.

    Args:
        plan: The plan.
        matched: The keys that were for some call.
        found: What the plan named when it was last looked for; None if nobody knows.
        registry: Knows functions that may be meant.
    """
    pending = {each.entry.key: each for each in (found.missing if found else ())}
    idle = [entry for entry in plan.entries if entry.key not in matched]
    came = _come_since(plan, found, registry) if idle and found else set()
    names = NearNames(registry)

    def why(entry: PlanEntry) -> str:
        each = pending.get(entry.key)
        if entry.key in came:
            return _LATER
        near = () if each is None else _near(each, names)
        return f"{_why(each)}{_asked(near)}"

    return [
        # That is no error: a plan may be for more programs than this one. But it reads like one.
        str(PlanError(str(entry.key), _WHAT, why(entry), plan.source, entry.line))
        for entry in idle
    ]


def _come_since(plan: OptimizationPlan, found: Resolved, registry: Strategies) -> set[Key]:
    """Return the keys that mean something by now which they did not when it was looked for."""
    try:
        now = resolve(plan, registry=registry, earlier=found)
    except PlanError:  # what came makes two keys equally good; whoever looks again is told
        return set()
    known = {(each.entry.key, each.key) for each in found.entries}
    return {each.entry.key for each in now.entries if (each.entry.key, each.key) not in known}


def find_doubts(
    missing: Iterable[Pending], registry: Strategies, *, is_told_of_main: bool
) -> list[tuple[PlanEntry, str]]:
    """Return a warning for each key that nothing is for so far, with the names that are near.

    Packages that are installed, and not imported yet, may still be.

    Args:
        missing: The entries that name what is not there yet.
        registry: Knows functions that may be meant.
        is_told_of_main: Whether somebody tells of what the main program defines from now on.
    """
    texts = []
    names = NearNames(registry)
    for each in missing:
        if not each.is_loaded:
            doubt = _of_package(each, names)
        elif each.module == MAIN and not is_told_of_main:
            doubt = _of_name(each, names)
        else:
            continue
        if doubt:
            texts.append((each.entry, f"the key {str(each.entry.key)!r} {doubt}"))
    return texts


def _of_package(missing: Pending, names: NearNames) -> str:
    package = missing.module.partition(".")[0]
    if _can_be_imported(package):
        return ""
    return f"is for no call: there is no package {package!r}{_asked(_near(missing, names))}"


def _of_name(missing: Pending, names: NearNames) -> str:
    name, asked = missing.name, _asked(_near(missing, names))
    if missing.beside:
        what = f"a function {name!r} of the program: {missing.why_not}, and the program no such"
        return f"waits for {what} function so far{asked}"
    what = f"a class or function {name!r}: the program has none so far, and no module such a class"
    return f"waits for {what}{f' that is meant; {missing.why_not}' if missing.why_not else asked}"


def _can_be_imported(package: str) -> bool:
    return package in sys.modules or find_spec(package) is not None


def _near(missing: Pending, names: NearNames) -> list[str]:
    """Return what may be meant in the place of what is missing."""
    if missing.beside:
        return names.beside(missing.name, missing.beside)
    if missing.is_loaded:
        return [] if missing.why_not or missing.module != MAIN else names.of(missing.name)
    package, key = missing.module.partition(".")[0], str(missing.entry.key)
    if _can_be_imported(package):
        return []
    whole = rf"(?<![\w.]){re.escape(package)}(?!\w)"
    return [re.sub(whole, name, key, count=1) for name in names.of_package(package)]


def _asked(near: Iterable[str]) -> str:
    names = " or ".join(map(repr, near))
    return f"; did you mean {names}?" if names else ""


def _why(missing: Pending | None) -> str:
    if missing is None:
        return "all that it names is there"
    if not missing.is_loaded:
        return f"no module {missing.module!r} was imported"
    owner = "the program" if missing.module == MAIN else f"the module {missing.module!r}"
    why_not = f"; {missing.why_not}" if missing.why_not else ""
    return f"{owner} had no such name when it was last looked for{why_not}"
