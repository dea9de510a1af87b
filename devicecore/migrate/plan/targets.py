"""Resolves a plan: the functions that its keys name in the imported modules."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import PlanError
from devicecore.migrate.plan.keys import ANY_NUMBER, Key, first_tie
from devicecore.migrate.plan.name_lookup import Finder, PatchTarget
from devicecore.migrate.plan.optimization_plan import tie_error
from devicecore.migrate.plan.strategy_modules import NoStrategies, Strategies
from devicecore.migrate.plan.symbols import MAIN, NotYetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devicecore.migrate.plan.optimization_plan import OptimizationPlan, PlanEntry

__all__ = ["MAIN", "Located", "PatchTarget", "Pending", "Resolved", "Wanted", "resolve"]


@frozen
class Located:
    """An entry whose functions were all found.

    Attributes:
        entry: What the plan says.
        key: The entry's key in canonical segments, as paths have them.
    """

    entry: PlanEntry
    key: Key


@frozen
class Wanted:
    """A function that has to be patched.

    Attributes:
        target: The function.
        leaf_of: The entries whose calls it is.
        inner_of: The entries that have it as a frame around their calls.
    """

    target: PatchTarget
    leaf_of: tuple[PlanEntry, ...]
    inner_of: tuple[PlanEntry, ...]


@frozen
class Pending:
    """An entry that names something that is not there yet.

    Attributes:
        entry: What the plan says.
        module: The module that has to be imported first; then another one may be missing.
        is_loaded: Whether that module is there already, so that no import announces the name: it is
            the main program, or a module that loads things when it is asked for them.
        name: What it has not, where it is there.
        beside: The names of the class that it may be of, if it comes after a method.
        why_not: Why something that is there is not what it names; empty where there is nothing.
    """

    entry: PlanEntry
    module: str
    is_loaded: bool
    name: str = ""
    beside: tuple[str, ...] = ()
    why_not: str = ""


@frozen
class Resolved:
    """What a plan means in what is imported now.

    Attributes:
        entries: Those whose functions were all found.
        targets: The functions that they name, each once.
        pending: The other entries, and those for a module of which more has to be imported.
        classes: The classes that bare names mean.
        open_names: The bare names that may mean a class which is imported later.
        errors: What is wrong with entries that were left out for it.
    """

    entries: tuple[Located, ...]
    targets: tuple[Wanted, ...]
    pending: tuple[Pending, ...]
    classes: Mapping[str, object] = field(factory=dict)
    open_names: frozenset[str] = frozenset()
    errors: tuple[PlanError, ...] = ()

    @property
    def missing(self) -> tuple[Pending, ...]:
        """Those of the other entries of which nothing is there."""
        found = {located.entry.key for located in self.entries}
        return tuple(each for each in self.pending if each.entry.key not in found)


def resolve(
    plan: OptimizationPlan,
    allow_imports: Iterable[str] = (),
    registry: Strategies | None = None,
    *,
    earlier: Resolved | None = None,
) -> Resolved:
    """Find the functions that *plan* names; ask again when more is imported.

    A segment is ``module:qualname``; a dotted name, whose first parts are an imported module; a
    method, if it comes after a class; a name of the main program; or, after a method, another one
    of its class or of one derived from that. A bare name that is none of those is the class of that
    name that is defined in an imported module; see `BareNames`. A class without a method stands for
    its instances being called, and a module at the end, also as ``module.*``, for all of its
    functions, and of modules below it, that have a strategy.

    Args:
        plan: The plan.
        allow_imports: The top-level packages that may be imported for it.
        registry: Which functions have a strategy; None for none.
        earlier: What was found when the plan was asked for before. Bare names mean the same then,
            and entries with errors are left out.

    Raises:
        PlanError: A name means nothing or more than one thing, an import failed, or two keys turn
            out to be equally good for the same calls.
    """
    allowed = (allow_imports,) if isinstance(allow_imports, str) else allow_imports
    chosen = {} if earlier is None else earlier.classes
    finder = Finder(frozenset(allowed), registry or NoStrategies(), chosen)
    errors: list[PlanError] = []
    located: list[Located] = []
    pending: list[Pending] = []
    asked: dict[PatchTarget, tuple[dict[Key, PlanEntry], dict[Key, PlanEntry]]] = {}
    for entry in plan.entries:
        try:
            meaning = finder.meaning(entry.key)
        except NotYetError as missing:
            pending.append(Pending(entry, *missing.args))
            continue
        except PlanError as error:
            errors.append(error.at(plan.source, entry.line, str(entry.key)))
            errors[-1].__cause__ = error.__cause__
            continue
        located += [Located(entry, key) for key in meaning.canonical()]
        pending += [Pending(entry, *missing.args) for missing in meaning.missing]
        last = next((step for step in reversed(meaning.steps) if step != (ANY_NUMBER,)), None)
        for step in meaning.steps:
            for target in step:
                if isinstance(target, PatchTarget):
                    leaf_of, inner_of = asked.setdefault(target, ({}, {}))
                    (leaf_of if step is last else inner_of)[entry.key] = entry
    _check(located, errors if earlier is None else (), plan.source)
    targets = (
        Wanted(target, tuple(leaf_of.values()), tuple(inner_of.values()))
        for target, (leaf_of, inner_of) in asked.items()
    )
    return Resolved(
        tuple(located),
        tuple(targets),
        tuple(pending),
        finder.bare_names.chosen,
        frozenset(finder.bare_names.open),
        tuple(errors),
    )


def _check(located: Iterable[Located], errors: Iterable[PlanError], plan: str) -> None:
    for error in errors:
        raise error
    if (tie := first_tie(located)) is not None:
        raise tie_error(tie[0].entry, tie[1].entry, tie[2], plan)


def get_function(target: PatchTarget) -> Any:
    """Return the function itself; None where there is none."""
    return getattr(*target.holder(), None)


def find_definition(target: PatchTarget) -> PatchTarget:
    """Return the same function by the name that it has where it is defined, as a plan's is."""
    function = get_function(target)
    module, qualname = (getattr(function, each, None) for each in ("__module__", "__qualname__"))
    if "." in target.qualname or not isinstance(module, str) or not isinstance(qualname, str):
        return target
    home = PatchTarget(module, qualname)
    with suppress(PlanError):
        if get_function(home) is function:
            return home
    return target
