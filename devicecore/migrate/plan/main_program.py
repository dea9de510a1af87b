"""Announces each definition in the main program, so that a plan can patch it at once.

The names of a main program do not exist before it runs, and no import announces them. So a call is
compiled in after each statement at its top level that makes such a name. Nothing else of the
program changes: not its names, its constants' values, its lines, or what comes first in it.
"""

from __future__ import annotations

import ast
import logging
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from devicecore.migrate.plan.keys import WILDCARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from devicecore.migrate.plan.optimization_plan import OptimizationPlan

# Stands, before the names, where the function belongs: a tree can hold no function, but code can.
_PLACE: Final = "\0devicecore: there are now \0"
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find_names(plan: OptimizationPlan) -> frozenset[str]:
    """Return the names that a main program could make, and *plan* mean.

    A name of something else may be among them.

    Examples:
        >>> from devicecore.migrate import OptimizationPlan
        >>> plan = OptimizationPlan.load({"Data/__getitem__/**/cv2:resize": "cpu"})
        >>> sorted(find_names(plan))
        ['Data', '__getitem__', 'resize']
    """
    segments = {segment for entry in plan.entries for segment in entry.key.pattern}
    return frozenset(
        segment.rpartition(":")[2].partition(".")[0] for segment in segments - {*WILDCARDS}
    )


def announce_definitions(
    code: CodeType,
    source: bytes | str,
    names: frozenset[str],
    call: Callable[[frozenset[str]], object],
) -> CodeType:
    """Return *code* with a call after each top-level statement that defines or imports a name.

    Args:
        code: A module's code.
        source: What it was compiled from.
        names: The names.
        call: What to call then, with those of the names that the statement makes; none for a
            ``*`` that may make them.
    """
    filename = code.co_filename
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of was told when code was made
        try:
            tree: Any = compile(source, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            if not _call_after_definitions(tree, names):
                return code
            code = compile(tree, filename, "exec", dont_inherit=True)
        except RecursionError:  # a tree may be less deep than a text
            msg = "%s is too deep to be told apart: its own functions are not migrated"
            logging.getLogger("devicecore").warning(msg, filename)
            return code
    return code.replace(co_consts=tuple(_in_its_place(each, call) for each in code.co_consts))


def _in_its_place(constant: Any, call: Callable[[frozenset[str]], object]) -> Any:
    if isinstance(constant, str) and constant.startswith(_PLACE):
        return partial(call, frozenset(constant.removeprefix(_PLACE).split()))
    return constant


def _call_after_definitions(parent: ast.AST, names: frozenset[str]) -> bool:
    """Add a call after each statement below *parent*, and in no function or class, that fits.

    Returns:
        Whether there was any.
    """
    is_changed = False
    for body in _bodies(parent):
        for at in range(len(body) - 1, -1, -1):
            statement = body[at]
            made = _made(statement) & {"*", *names}
            if made:
                body.insert(at + 1, _call_at(statement, made - {"*"}))
                is_changed = True
            elif not isinstance(statement, _DEFINITIONS):
                is_changed |= _call_after_definitions(statement, names)
    return is_changed


def _bodies(parent: ast.AST) -> Iterator[list[Any]]:
    """Yield the lists of statements in *parent*, those of its handlers and cases among them."""
    for _, value in ast.iter_fields(parent):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
            for each in value:
                yield each.body


def _made(statement: ast.stmt) -> set[str]:
    """Return the names that *statement* itself defines or imports."""
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        return set()  # more of them may follow, and nothing may stand between them
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return set()


def _call_at(statement: ast.stmt, made: set[str]) -> ast.Expr:
    place = ast.Constant(_PLACE + " ".join(sorted(made)))
    called = ast.Attribute(place, "__call__", ast.Load())
    expression: Any = ast.Expr(ast.Call(called, [], []))
    # All on one line, else a part of the call lies where the statement ends.
    expression.lineno = expression.end_lineno = statement.lineno
    expression.col_offset = expression.end_col_offset = statement.col_offset
    return ast.fix_missing_locations(expression)  # type: ignore[no-any-return]
