"""``devicecore run``: runs a program as Python does, and the calls that a plan names elsewhere."""

from __future__ import annotations

import atexit
import os
from argparse import REMAINDER
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from devicecore import config
from devicecore.cli.program import Program
from devicecore.cli.streams import say
from devicecore.cli.usage import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import TextIO

    from devicecore.cli.lookout import Lookout
    from devicecore.migrate.calls.report import MigrationReport

_FORMATS: Final[dict[str, Callable[[MigrationReport], str]]] = {
    ".txt": "{}\n".format,
    ".json": lambda report: report.as_json(),
    ".html": lambda report: report.as_html(),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.usage = "devicecore run [options] (SCRIPT | -m MODULE) [ARGUMENT ...]"
    parser.add_argument("--plan", metavar="FILE", help="which calls run where; else the program's")
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=Path,
        help=f"where to write what became of them: {', '.join(_FORMATS)}",
    )
    parser.add_argument(
        "--strict", action="store_true", help="end with an error where a call cannot run there"
    )
    parser.add_argument(
        "--verify", metavar="N", type=int, default=0, help="check one of N calls by its original"
    )
    parser.add_argument(
        "--allow-imports",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="import this package because the plan names it",
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module")
    parser.add_argument(
        "program",
        metavar="SCRIPT",
        nargs=REMAINDER,  # all that follows is the program's, whatever it looks like
        help="a file, a folder or an archive with a __main__.py, - for standard input; or a module",
    )


def run(args: Namespace, _: TextIO) -> Callable[[], int]:
    """Make everything ready, and return what runs the program.

    Raises:
        UsageError: The arguments do not go together, or a file cannot be read or written.
        PlanError: The plan is none.
    """
    words = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not words:
        msg = "there is no program to run"
        raise UsageError(msg, "name a script, or a module after -m")
    lookout = _lookout(args)
    recompile = lookout.recompile if lookout and config.load().migrates else None
    try:
        program = Program(words, is_module=args.is_module, recompile=recompile)
    except OSError as error:
        msg = f"can't open file {error.filename!r}: [Errno {error.errno}] {error.strerror}"
        raise UsageError(msg) from error
    report = args.report and args.report.absolute()  # the program may go to another folder
    program.enter()
    if lookout is not None:
        lookout.activate()
        # Handlers of the program come later, so they run earlier, and are still reported.
        atexit.register(_ended, lookout, report, os.getpid())
    return program.run


def _lookout(args: Namespace) -> Lookout | None:
    """Return what does as the plan says, if there is one."""
    if args.plan is None:
        if args.report or args.strict or args.verify or args.allow_imports:
            msg = "--report, --strict, --verify and --allow-imports are about a plan"
            raise UsageError(msg, "name it with --plan")
        return None
    if args.verify < 0:
        msg = f"--verify {args.verify} is no number of calls"
        raise UsageError(msg, "it is 1 or more, or 0 for none")
    if args.report and args.report.suffix not in _FORMATS:
        msg = f"--report {args.report} names none of {', '.join(_FORMATS)}"
        raise UsageError(msg)
    if args.report and not args.report.absolute().parent.is_dir():
        msg = f"--report {args.report} is in no folder that there is"
        raise UsageError(msg)
    from devicecore.cli.lookout import Lookout  # other programs need not wait for it

    try:
        return Lookout(
            args.plan, strict=args.strict, verify=args.verify, allow_imports=args.allow_imports
        )
    except OSError as error:
        msg = f"--plan {args.plan} cannot be read: {error.strerror}"
        raise UsageError(msg) from error


def _ended(lookout: Lookout, report: Any, process: int) -> None:
    """Say what is left to say, but not in a child that was forked: it ends the same way."""
    if os.getpid() != process:
        return
    lookout.say_what_is_left()
    if report is None:
        return
    try:
        report.write_text(_FORMATS[report.suffix](lookout.report()), encoding="utf-8")
    except OSError as error:
        say(f"devicecore: {report} cannot be written: {error.strerror}")
