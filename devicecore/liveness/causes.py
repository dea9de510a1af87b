"""Why nothing of several device types is here, each cause once and none of another system."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

_OTHER_SYSTEM = re.compile(r"exists on .+ only$")
_NO_HARDWARE = re.compile(r"there is (no .+?)(?: here)?$")
_NO_GPU = "no GPU"


@frozen
class Refusal:
    """A device type, or a name, that was not taken.

    Attributes:
        name: The type or the name.
        state: Its state, such as ``absent``.
        reason: Why, in one line.
        fix: What to do about it.
    """

    name: str
    state: str
    reason: str
    fix: str = ""


def is_of_another_system(refusal: Refusal) -> bool:
    """Return whether it cannot be here, since it exists on another system only."""
    return refusal.state == "absent" and _OTHER_SYSTEM.search(refusal.reason) is not None


def lacking(refusal: Refusal) -> str:
    """Return the hardware that is not here, such as ``no NVIDIA GPU``, where that is all."""
    match = _NO_HARDWARE.match(refusal.reason)
    return match[1] if match and refusal.state == "absent" and not refusal.fix else ""


def joined(words: Iterable[str], last: str) -> str:
    """Return *words* as they stand in a sentence, with *last* before the last one."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def causes(refusals: Iterable[Refusal]) -> str:
    """Return the causes of *refusals* in one line; all of them where none can be here."""
    given = list(refusals)
    here = [each for each in given if not is_of_another_system(each)] or given
    hardware = list(dict.fromkeys(what for each in here if (what := lacking(each))))
    if _NO_GPU in hardware:  # so that no maker's is
        hardware = [what for what in hardware if what == _NO_GPU or not what.endswith("GPU")]
    names: dict[str, dict[str, None]] = {}
    for each in here:
        if not lacking(each):
            names.setdefault(each.reason, {})[each.name] = None
    lines = [f"there is {joined(hardware, 'and')} here"] if hardware else []
    return "; ".join([*lines, *(f"{', '.join(of)}: {why}" for why, of in names.items())])
