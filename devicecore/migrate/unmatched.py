"""Keys of a plan that were for no call: a name is written wrong, or the call never came."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from devicecore.errors import PlanError
from devicecore.migrate.near_names import NearNames
from devicecore.migrate.spots import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from devicecore.migrate.keys import Key
    from devicecore.migrate.plan import OptimizationPlan, PlanEntry
    from devicecore.migrate.registry import StrategyRegistry
    from devicecore.migrate.targets import Pending

_WHAT: Final = "no call of this process, or of its workers with this plan, was for it"


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
    package, key = missing.module.partition(".")[0], str(missing.entry.key)
    if package in sys.modules or find_spec(package) is not None:
        return ""
    whole = rf"(?<![\w.]){re.escape(package)}(?!\w)"
    near = [re.sub(whole, name, key, count=1) for name in names.of_package(package)]
    return f"is for no call: there is no package {package!r}{_asked(near)}"


def _of_name(missing: Pending, names: NearNames) -> str:
    name = missing.name
    if missing.beside:
        what = f"a function {name!r} of the program: {missing.why_not}, and the program no such"
        return f"waits for {what} function so far{_asked(names.beside(name, missing.beside))}"
    what = f"a class or function {name!r}: the program has none so far, and no module such a class"
    if missing.why_not:
        return f"waits for {what} that is meant; {missing.why_not}"
    return f"waits for {what}{_asked(names.of(name))}"


def _asked(near: Iterable[str]) -> str:
    names = " or ".join(map(repr, near))
    return f"; did you mean {names}?" if names else ""


def _why(missing: Pending | None) -> str:
    if missing is None:
        return "all that it names is there"
    if not missing.is_loaded:
        return f"no module {missing.module!r} was imported"
    owner = "the program" if missing.module == MAIN else f"the module {missing.module!r}"
    return f"{owner} had no such name when it was last looked for"
