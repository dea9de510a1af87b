"""Functions, by the names that they have where they are defined."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from devicecore.errors import PlanError
from devicecore.migrate.targets import Target


def function_of(target: Target) -> Any:
    """Return the function itself; None where there is none."""
    return getattr(*target.holder(), None)


def at_home(target: Target) -> Target:
    """Return the same function by the name that it has where it is defined, as a plan's is."""
    function = function_of(target)
    module, qualname = (getattr(function, each, None) for each in ("__module__", "__qualname__"))
    if "." in target.qualname or not isinstance(module, str) or not isinstance(qualname, str):
        return target
    home = Target(module, qualname)
    with suppress(PlanError):
        if function_of(home) is function:
            return home
    return target
