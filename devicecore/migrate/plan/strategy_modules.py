"""Finds the functions with a strategy in a module that a plan names as a whole."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol

from devicecore.errors import PlanError
from devicecore.errors.base import listing
from devicecore.migrate.plan.package_aliases import find_package

if TYPE_CHECKING:
    from collections.abc import Iterable


class Strategies(Protocol):
    """Knows which functions have a strategy, as a `StrategyRegistry` does."""

    @property
    def packages(self) -> frozenset[str]:
        """The packages that they are in."""
        ...

    def names(self, packages: Iterable[str], /) -> list[str]:
        """Return the dotted names of those in some packages."""
        ...


class NoStrategies:
    """Knows of none."""

    packages: frozenset[str] = frozenset()

    def names(self, _: Iterable[str], /) -> list[str]:
        """Return nothing."""
        return []


def find_functions(module: str, registry: Strategies) -> list[str]:
    """Return the dotted names of all functions with a strategy in *module* and below it.

    Raises:
        PlanError: There are none.
    """
    package = module.partition(".")[0]
    names = registry.names([package])
    found = [name for name in names if name.startswith(f"{module}.")]
    if not found:
        modules = {name[:at] for name in names for at, mark in enumerate(name) if mark == "."}
        raise _without_strategies(module, registry, modules & sys.modules.keys())
    return found


def check_package(module: str, registry: Strategies) -> None:
    """Check that the package of a module, which is not loaded yet, can have such functions.

    Raises:
        PlanError: It cannot.
    """
    if module.partition(".")[0] not in registry.packages:
        raise _without_strategies(module, registry, ())


def _without_strategies(module: str, registry: Strategies, known: Iterable[str]) -> PlanError:
    possible = sorted({*registry.packages, *known})
    called = find_package(module.partition(".")[0])
    near = [called] if called else get_close_matches(module, possible, n=1)
    reason = f"no function of a module {module!r} has a strategy"
    fix = f"there are some in {listing(possible)}; a key may name any function itself"
    return PlanError("", reason, f"did you mean '{near[0]}.*'?" if near else fix)
