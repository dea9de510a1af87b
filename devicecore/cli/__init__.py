"""The command line: one file for each command, imported when it is called.

Exit codes: 0 all went well, 1 what was asked for does not work here or could not be printed, 2 the
call itself is wrong, 141 the reader of a pipe left before the end.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

from devicecore import __version__
from devicecore.cli.streams import (
    LostOutputError,
    Output,
    fill_closed_descriptors,
    give_up_what_waits,
    say,
)
from devicecore.cli.usage import UsageError
from devicecore.errors import ConfigurationError, DeviceCoreError, InvalidDeviceNameError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

COMMANDS = {
    "devices": "list the devices of this machine, and why the others are not live",
    "resolve": "say which device a program would get, and why",
    "doctor": "explain every candidate, and what is wrong with this machine",
    "bench": "measure how fast each device runs a model, and whether it gives the CPU's answer",
    "demo": "read the text of a page on the best device",
    "run": "run a program as it is, and the calls that a plan names on other devices",
}

_NOT_LIVE = 1
_USAGE = 2
_INTERRUPTED = 130
_READER_LEFT = 141  # what a shell says of a program that SIGPIPE has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: The words after the program's name; None for those of this process.
    """
    out = Output(sys.stdout)
    try:
        code = _called(list(sys.argv[1:] if arguments is None else arguments), out)
    except LostOutputError:
        code = _say_that_output_is_lost(out)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    finally:
        give_up_what_waits()
    # A program's errors and streams are its own: nothing above is said of them.
    return code() if callable(code) else code


def _called(words: list[str], out: Output) -> int | Callable[[], int]:
    """Return the exit code, or what runs the program of ``devicecore run``.

    Raises:
        LostOutputError: Not all that was written has arrived.
    """
    try:
        with redirect_stdout(out):  # argparse writes its help
            parsed = _parsed(words)
    except SystemExit as stop:
        out.flush()
        if out.error is not None and not stop.code:  # argparse says nothing of an error
            raise LostOutputError from out.error
        raise
    if parsed.command != "run":  # what a program writes is its own
        fill_closed_descriptors()
        _write_any_text(sys.stdout)
    try:
        code: int | Callable[[], int] = parsed.run(parsed, out)
        if isinstance(code, int):
            out.flush()
    except LostOutputError:
        raise
    except (ConfigurationError, InvalidDeviceNameError, PlanError, UsageError) as error:
        _say(error, out if _wants_data(parsed) else None)
        return _USAGE
    except (DeviceCoreError, OSError) as error:  # such as a full disk, or no descriptor left
        _say(error, out if _wants_data(parsed) else None)
        return _NOT_LIVE
    return code


def _parsed(words: list[str]) -> Namespace:
    parser = ArgumentParser("devicecore", description="Devices that really work.")
    parser.add_argument("--version", action="version", version=f"devicecore {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    called = next((word for word in words if not word.startswith("-")), "")
    for name, summary in COMMANDS.items():
        sentence = f"{summary[0].upper()}{summary[1:]}."
        command = commands.add_parser(name, help=summary, description=sentence)
        if name == called:  # the others are not called, so they need not be imported
            module = import_module(f"devicecore.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(words)


def _write_any_text(out: TextIO | None) -> None:
    """Let *out* escape the letters that its encoding lacks, as a pipe on Windows lacks most."""
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="backslashreplace")


def _wants_data(parsed: Namespace) -> bool:
    # What `devicecore run` prints on standard output is the program's own.
    return parsed.command != "run" and bool(getattr(parsed, "json", False))


def _say(error: Exception, out: Output | None) -> None:
    """Say what went wrong in one line, and as data to *out*, where a reader expects such."""
    message = " ".join(str(error).split())
    say(f"devicecore: {message}")
    if out is not None:
        facts = vars(error) if isinstance(error, DeviceCoreError) else {}
        data = {"error": {"type": type(error).__name__, "message": message, **facts}}
        with suppress(LostOutputError):  # the line above has told it all
            print(json.dumps(data, indent=2, default=str), file=out)
            out.flush()


def _say_that_output_is_lost(out: Output) -> int:
    if isinstance(out.error, BrokenPipeError):  # the reader has seen enough, as `head` does
        return _READER_LEFT
    why = getattr(out.error, "strerror", None) or out.error
    say(
        f"devicecore: standard output cannot be written ({why}), so not all of the answer was "
        "printed; send it where it can be"
    )
    return _NOT_LIVE
