"""Refuses functions that no wrapper can replace, and says why."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Final

from devicecore.errors import PlanError
from devicecore.migrate.patching.static_lookup import is_a, names_of
from devicecore.migrate.plan.symbols import value_at

if TYPE_CHECKING:
    from devicecore.migrate.plan.symbols import Symbol

_IMMUTABLE: Final = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_ON_THE_HEAP: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE
OURS: Final = ("devicecore", "devicecore_factories")
_INSTEAD: Final = "name a function of the program that calls it"


def check_is_function(spot: Symbol) -> None:
    """Check that something is a function, or an object that is called as one is.

    Raises:
        PlanError: It is none.
    """
    value = spot.value
    if is_a(value, staticmethod) or is_a(value, classmethod):
        value = value.__func__
    if not callable(value) or is_a(value, type):
        is_computed = hasattr(type(value), "__get__")  # a property, or one of its kind
        fix = "name a function that it calls, or one that uses it" if is_computed else ""
        raise PlanError("", f"'{spot}' is of type {type(value).__name__}, no function", fix)


def check_replaceable(spot: Symbol) -> None:
    """Check that a wrapper can stand in for a function.

    Raises:
        PlanError: It cannot; says why.
    """
    reason = _why_not(spot)
    if reason:
        raise PlanError("", f"'{spot}' cannot be replaced: {reason}", _INSTEAD)


def _why_not(spot: Symbol) -> str:
    if spot.package in OURS:
        return "it is a part of devicecore itself"
    # Also under other names, as io.open: the wrapper would be what everybody finds as a builtin.
    if any(spot.value is each for each in names_of(builtins).values()):
        return "it is a builtin, which devicecore and all others call for everything they do"
    owner = value_at(spot.module, spot.qualname.rpartition(".")[0])
    if is_a(owner, type) and (owner.__flags__ & _IMMUTABLE or not owner.__flags__ & _ON_THE_HEAP):
        return f"{owner.__name__!r} is a class written in C, whose methods are fixed"
    return ""
