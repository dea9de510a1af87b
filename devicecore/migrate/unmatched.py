"""Keys of a plan that were for no call: a name is written wrong, or the call never came."""

from __future__ import annotations

import logging
import sys
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from devicecore.errors import PlanError
from devicecore.migrate.targets import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from devicecore.migrate.keys import Key
    from devicecore.migrate.plan import OptimizationPlan
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


def warn_of_missing_packages(missing: Iterable[Pending]) -> None:
    """Log a warning for each key whose package nobody can import, with the names that are near.

    Args:
        missing: The entries that name what is not there yet.
    """
    for each in missing:
        package = each.module.partition(".")[0]
        if each.is_loaded or package in sys.modules or find_spec(package) is not None:
            continue
        known = {name for name in sys.modules if "." not in name and not name.startswith("_")}
        near = " or ".join(map(repr, get_close_matches(package, known, n=2)))
        logging.getLogger("devicecore").warning(
            "the key %r of the plan is for no call: there is no package %r%s",
            str(each.entry.key),
            package,
            f"; is it {near}?" if near else "",
        )


def _why(missing: Pending | None) -> str:
    if missing is None:
        return "all that it names is there"
    if not missing.is_loaded:
        return f"no module {missing.module!r} was imported"
    owner = "the program" if missing.module == MAIN else f"the module {missing.module!r}"
    return f"{owner} had no such name when it was last looked for"
