"""`Lookout`: tells a plan's migrator what a program defines, and the user what is wrong, once."""

from __future__ import annotations

import re
import sys
import warnings
from typing import TYPE_CHECKING, Any, Final

from devicecore.cli.streams import say
from devicecore.errors import PlanError
from devicecore.migrate import PipelineMigrator
from devicecore.migrate.plan.main_program import announce_definitions, find_names

if TYPE_CHECKING:
    from types import CodeType, ModuleType

    from devicecore.migrate.plan.optimization_plan import PlanEntry

WRONG_PLAN: Final = 2
_MOST_KEYS: Final = 12


class Lookout(PipelineMigrator):
    """A migrator that is told of the functions which a main program defines.

    Args:
        plan: As the migrator's.
        options: The same.
    """

    _is_told_of_main = True  # by `_look`

    def __init__(self, plan: Any, **options: Any) -> None:
        super().__init__(plan, **options)
        # Why some could not be taken when it looked last; None where all could.
        self._error: PlanError | None = None
        self._said = ""

    def recompile(self, code: CodeType, source: bytes | str) -> CodeType:
        """Return *code* so that it tells."""
        return announce_definitions(code, source, find_names(self.plan), self._look)

    def say_what_is_left(self) -> None:
        """Say what is wrong when the program has ended, or which keys of the plan came to nothing.

        A plan may be for more programs than this one, so that the latter is no error.
        """
        lines = self._unmatched()
        if lines:
            self._look(frozenset())  # nobody tells of names that are made by an assignment
            lines = self._unmatched()
        if self._error is not None:
            self._say(self._error)
            return
        for line in lines[:_MOST_KEYS]:
            _print(line)
        if len(lines) > _MOST_KEYS:
            _print(f"{len(lines) - _MOST_KEYS} more keys were for no call; --report names them")

    def _look(self, made: frozenset[str]) -> None:
        """Look for what the program has now, where a statement of it has *made* some names."""
        try:
            self.refresh()
        except PlanError as error:
            # Of another name, the program may yet make what the plan means.
            self._error = error
            if _is_about(error, made):
                sys.exit(WRONG_PLAN)
        else:
            self._error = None

    def _warn(self, entry: PlanEntry, text: str, /) -> None:
        # No line of the program has run yet; what the user has written is the plan.
        warnings.warn_explicit(text, RuntimeWarning, self.plan.source, entry.line or 1)

    def _imported(self, module: ModuleType) -> None:
        try:
            super()._imported(module)
        except PlanError as error:
            self._error = error
            if _is_about(error, {module.__name__.partition(".")[0]}):  # it will not get better
                self._say(error)

    def _say(self, error: PlanError) -> None:
        text = str(error)
        if text != self._said:
            _print(text)
        self._said = text


def _is_about(error: PlanError, names: frozenset[str] | set[str]) -> bool:
    return bool(names & {*re.split("[/:.]", error.key)})


def _print(text: str) -> None:
    say(f"devicecore: {' '.join(text.split())}")
