"""``devicecore resolve``: which device a program would get, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import asdict

from devicecore.cli.progress import progress
from devicecore.cli.table import print_table, width_of, wrapped, wrapped_fix
from devicecore.cli.usage import UsageError
from devicecore.errors import DeviceCoreError
from devicecore.resolution import resolve
from devicecore.resolution.explanation import FIX_INTRODUCTION

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import TextIO


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument(
        "request",
        metavar="REQUEST",
        nargs="?",
        default="auto",
        help="auto, gpu, npu or a name (default: %(default)s)",
    )
    parser.add_argument("--framework", help="what it must be live for: torch or onnx")
    parser.add_argument("--policy", help="prefer:NAME,NAME or require:NAME, in place of a request")
    parser.add_argument("--json", action="store_true", help="print plain data")


def run(args: Namespace, out: TextIO) -> int:
    """Run the command; what it finds goes to *out*.

    Raises:
        DeviceCoreError: What was asked for does not work here.
        UsageError: The policy is none, or it and the request both name devices.
    """
    try:
        with progress() as show:
            show("choosing a device")
            found = resolve(args.request, framework=args.framework, policy=args.policy)
    except DeviceCoreError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    device = found.device
    short = f"{device.device_type}:{device.parsed_name.index}"
    if args.json:
        data = {
            "device": device.name,
            "torch_device": device.torch_device,
            "description": device.attributes.description,
            "why": found.why,
            "rejected": [asdict(each) for each in found.rejected],
        }
        print(json.dumps(data, indent=2), file=out)
        return 0
    if out.isatty():
        _print_sentences(found.explain(), out)
        return 0
    print(f"{short}  {device.attributes.description}", file=out)
    print(f"because: {found.why}", file=out)
    if found.rejected:
        print("before it:", file=out)
        print_table([(each.name, each.state, each.reason) for each in found.rejected], out)
    return 0


def _print_sentences(text: str, out: TextIO) -> None:
    """Print the lines of *text* as wide as *out* is; a fix that needs more has lines of its own."""
    columns = width_of(out)
    for line in text.splitlines():
        reason, introduction, fix = line.partition(FIX_INTRODUCTION)
        if len(line) <= columns or not fix:
            lines = wrapped(line, 0, columns)
        else:
            lines = wrapped(reason + introduction, 0, columns)
            lines += [f"  {part}" for part in wrapped_fix(fix, 2, columns)]
        print("\n".join(lines), file=out)
