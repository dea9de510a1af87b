"""The command line: one file for each command, imported when it is called.

Exit codes: 0 all went well, 1 what was asked for does not work here, 2 the call itself is wrong.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

from devicecore import __version__
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: The words after the program's name; None for those of this process.
    """
    parsed = _parsed(list(sys.argv[1:] if arguments is None else arguments))
    if parsed.command != "run":  # what a program writes is its own
        _write_any_text(sys.stdout)
    try:
        code: int | Callable[[], int] = parsed.run(parsed, sys.stdout)
        if isinstance(code, int):
            sys.stdout.flush()
    except (ConfigurationError, InvalidDeviceNameError, PlanError, UsageError) as error:
        return _say(error, _USAGE)
    except DeviceCoreError as error:
        return _say(error, _NOT_LIVE)
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    # A program's errors are its own: nothing above is said of them.
    return code() if callable(code) else code


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


def _write_any_text(out: TextIO) -> None:
    """Let *out* escape the letters that its encoding lacks, as a pipe on Windows lacks most."""
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="backslashreplace")


def _say(error: Exception, code: int) -> int:
    print(f"devicecore: {' '.join(str(error).split())}", file=sys.stderr)
    return code
