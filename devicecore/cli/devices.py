"""``devicecore devices``: the devices of this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from devicecore.cli.listing import devices_as_data, print_devices

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import TextIO


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument("--json", action="store_true", help="print plain data")


def run(args: Namespace, out: TextIO) -> int:
    """Run the command; what it finds goes to *out*."""
    if args.json:
        print(json.dumps(devices_as_data(), indent=2), file=out)
    else:
        print_devices(out)
    return 0
