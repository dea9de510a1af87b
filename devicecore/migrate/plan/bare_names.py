"""Finds the class that a bare name in a plan means.

The program's own come first, then those of installed packages, then the standard library's.
devicecore's own are meant by nobody.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from devicecore.errors import PlanError
from devicecore.errors.base import listing
from devicecore.migrate.patching.static_lookup import is_a, names_of, own
from devicecore.migrate.plan.patchable import OURS
from devicecore.migrate.plan.symbols import find_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from devicecore.migrate.plan.symbols import Symbol

_FOLDERS_OF_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})


class BareNames:
    """Finds the classes of bare names.

    Args:
        chosen: The class of each name that was found earlier, and is still meant by it where
            another one has come.

    Attributes:
        open: The names which a class that is imported later may be meant by.
    """

    def __init__(self, chosen: Mapping[str, object]) -> None:
        self.open: set[str] = set()
        self.chosen: dict[str, object] = dict(chosen)

    def find(self, name: str, check: Callable[[Symbol], object]) -> tuple[Symbol | None, str]:
        """Return the class that a name means, if any, and else why one of that name is not meant.

        Args:
            name: The name.
            check: Raises a `PlanError` if the plan can mean nothing of a class. The program's own
                are meant all the same, so that this is said.

        Raises:
            PlanError: There are several.
        """
        spots = [each for each in find_definitions(name) if is_a(each.value, type)]
        spots = [each for each in spots if each.package not in OURS]
        programs = [each for each in spots if is_programs(each.module)]
        if programs:
            return self._only(name, programs), ""
        self.open.add(name)
        why = ""
        found: list[Symbol] = []
        # A module may call a class something else, as unittest.main its TestProgram.
        for spot in (each for each in spots if own(each.value, "__qualname__") == name):
            try:
                check(spot)
            except PlanError as error:
                if spot.package in sys.stdlib_module_names:
                    continue
                why = why or "; ".join(filter(None, (error.reason, error.fix)))
            else:
                found.append(spot)
        others = [each for each in found if each.package not in sys.stdlib_module_names]
        return (self._only(name, others or found), "") if found else (None, why)

    def _only(self, name: str, spots: Iterable[Symbol]) -> Symbol:
        classes = {id(each.value): each for each in spots}
        if len(classes) > 1:
            chosen = classes.get(id(self.chosen.get(name)))
            if chosen is None:
                which = listing(map(str, classes.values()))
                reason = f"there are {len(classes)} classes {name!r}"
                raise PlanError("", reason, f"write one of {which}")
            return chosen
        (spot,) = classes.values()
        self.chosen[name] = spot.value
        return spot


def is_programs(module: str) -> bool:
    """Return whether a loaded module is the program's own, as far as its file says."""
    package = module.partition(".")[0]
    if package in sys.stdlib_module_names:
        return False
    # Those of C code, or made while it runs, may have no file.
    files = (names_of(sys.modules.get(each)).get("__file__") for each in (module, package))
    file = next((each for each in files if isinstance(each, str)), "")
    return not _FOLDERS_OF_PACKAGES & {*PurePath(file).parts}
