"""`Program`: runs a script or a module in this process as Python itself runs its main program.

Python's own steps are followed: which folder comes first on the path, what ``sys.argv`` and
``__main__`` hold, what becomes of an exception that nobody catches. The frames that called us are
below the program's; tracebacks are shown without them.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from pkgutil import get_importer
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, TracebackType

MAIN: Final = "__main__"
_STDIN: Final = "-"
_WRAPPERS: Final = "devicecore.migrate."


class Program:
    """A main program: a script, a folder or archive with a ``__main__.py``, or a module.

    To be entered, and then run, once in the life of a process, which it takes over.

    Args:
        words: The script, ``-`` for standard input, or the module; then its arguments.
        is_module: Whether it is a module's name, as after ``python -m``.
        recompile: Given the program's code and its source, returns the code to be run instead; None
            to run it as it is. It is not asked where there is no source.

    Raises:
        OSError: The script cannot be read.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        is_module: bool,
        recompile: Callable[[CodeType, bytes | str], CodeType] | None = None,
    ) -> None:
        self._words = list(words)
        self._is_module = is_module
        self._recompile = recompile
        self._path = ""
        self._is_found_by_import = is_module
        self._data = b""
        if not is_module and words[0] != _STDIN:
            # As Python does it: absolute, but neither shortened nor followed through links.
            self._path = os.path.join(os.getcwd(), words[0])  # noqa: PTH109, PTH118
            self._is_found_by_import = get_importer(self._path) is not None
            if not self._is_found_by_import:
                self._data = Path(self._path).read_bytes()

    def enter(self) -> None:
        """Give the process the program's arguments, import path and empty main module."""
        sys.argv = ["-m", *self._words[1:]] if self._is_module else self._words
        first = self._first_of_path()
        if not sys.flags.safe_path:  # else Python has put nothing there
            sys.path[0] = first
        elif self._path and self._is_found_by_import:
            sys.path.insert(0, first)
        main: Any = ModuleType(MAIN)
        main.__builtins__ = sys.modules["builtins"]  # exec would put its dictionary there
        if "__annotations__" in vars(sys.modules[MAIN]):
            main.__annotations__ = {}
        sys.modules[MAIN] = main

    def run(self) -> int:
        """Run the program, and return its exit code.

        Raises:
            SystemExit: The program wants it, or cannot be found.
            BaseException: The program's own exception. `sys.excepthook` then shows it without the
                frames below the program.
        """
        try:
            code, names = self._found()
            # The module is not kept here: it has to go when the interpreter lets go of it.
            vars(sys.modules[MAIN]).update(names)
            exec(code, vars(sys.modules[MAIN]))  # noqa: S102 - what this is for
        except SystemExit:
            raise
        except BaseException as error:
            traceback = _part_of_program(error.__traceback__)
            for each in _chain(error.with_traceback(traceback)):
                _leave_out_wrappers(each.__traceback__)
            _show_from_program(traceback)
            raise
        return 0

    def _first_of_path(self) -> str:
        if self._is_module:
            return os.getcwd()  # noqa: PTH109 - a text is wanted
        if not self._path or self._is_found_by_import:
            return self._path
        return str(Path(self._path).resolve().parent)

    def _found(self) -> tuple[CodeType, dict[str, Any]]:
        """Return the program's code, and what its module is told of itself."""
        code: Any
        source: bytes | str | None
        if self._is_found_by_import:
            spec, code, source = self._imported()
            names = _names(spec.origin, spec.loader, spec.cached, spec.parent, spec)
            if self._is_module:
                sys.argv[0] = str(spec.origin)
        elif self._data.startswith(MAGIC_NUMBER):
            compiled = SourcelessFileLoader(MAIN, self._path)
            code, source = compiled.get_code(MAIN), None
            names = _names(self._path, compiled)
        else:
            path = self._path or "<stdin>"
            data = self._data if self._path else sys.stdin.buffer.read()
            code, source = compile(data, path, "exec", dont_inherit=True), data
            names = _names(path, SourceFileLoader(MAIN, path) if self._path else BuiltinImporter)
        if self._recompile is not None and source is not None:
            code = self._recompile(code, source)
        return code, names

    def _imported(self) -> _Imported:
        try:
            # These private functions are what `python -m` runs, and pdb and trace build upon.
            if self._is_module:
                find: Any = runpy._get_module_details  # type: ignore[attr-defined]  # noqa: SLF001
                name, spec, code = find(self._words[0], _NotFoundError)
            else:
                find = runpy._get_main_module_details  # type: ignore[attr-defined]  # noqa: SLF001
                name, spec, code = find(_NotFoundError)
        except _NotFoundError as error:
            sys.exit(f"devicecore: {error}")
        get_source = getattr(spec.loader, "get_source", None)
        return _Imported(spec, code, get_source(name) if get_source and self._recompile else None)


class _NotFoundError(Exception):
    """There is no such module, or it cannot be a main program."""


class _Imported(NamedTuple):
    spec: ModuleSpec
    code: CodeType
    source: str | None


def _names(
    path: str | None,
    loader: Any,
    cached: str | None = None,
    package: str | None = None,
    spec: ModuleSpec | None = None,
) -> dict[str, Any]:
    return {
        "__file__": path,
        "__loader__": loader,
        "__cached__": cached,
        "__package__": package,
        "__spec__": spec,
    }


def _part_of_program(traceback: TracebackType | None) -> TracebackType | None:
    """Return what comes after the last frame of this file, and what that called to find it."""
    found = entry = traceback
    while entry is not None:
        is_ours = entry.tb_frame.f_globals is globals()
        entry = entry.tb_next
        if is_ours:
            found = entry
    while found is not None and found.tb_frame.f_globals is vars(runpy):
        found = found.tb_next
    return found


def _chain(error: BaseException) -> list[BaseException]:
    """Return *error* and all that is shown with it as what it came from."""
    found: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            waiting += each.__cause__, each.__context__
    return list(found.values())


def _leave_out_wrappers(traceback: TracebackType | None) -> None:
    """Take out the frames between the program's own, through which a migrated call went.

    Those at the end of *traceback* stay: something went wrong there.
    """
    before = traceback
    while before is not None:
        after = before.tb_next
        while after is not None and _is_wrapper(after):
            after = after.tb_next
        if after is None:
            return
        before.tb_next = after
        before = after


def _is_wrapper(traceback: TracebackType) -> bool:
    return str(traceback.tb_frame.f_globals.get("__name__")).startswith(_WRAPPERS)


def _show_from_program(traceback: TracebackType | None) -> None:
    """Let the exception that is about to end the process be shown with *traceback*.

    It passes through the frames below on its way, so that Python itself does what has to be done:
    exit codes, signals, hooks.
    """
    programs_hook = getattr(sys, "excepthook", sys.__excepthook__)

    def hook(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        sys.excepthook = programs_hook
        sys.last_traceback = error.__traceback__ = traceback
        try:
            programs_hook(kind, error, traceback)
        except SystemExit:
            raise
        except BaseException as failure:  # noqa: BLE001 - Python shows any, and goes on
            print("Error in sys.excepthook:", file=sys.stderr)
            _show(failure, _part_of_program(failure.__traceback__))
            print("\nOriginal exception was:", file=sys.stderr)
            _show(error, traceback)

    sys.excepthook = hook


def _show(error: BaseException, traceback: TracebackType | None) -> None:
    sys.__excepthook__(type(error), error.with_traceback(traceback), traceback)
