"""Why a program uses a device and no better one, for a person who knows neither."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.errors import without_pip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.resolution.full import Rejected, Resolution

_OTHER_SYSTEM = re.compile(r"exists on .+ only$")
_NO_HARDWARE = re.compile(r"there is (no .+?)(?: here)?$")
FIX_INTRODUCTION = " To change that: "
_NOT_INSTALLED = "something that it needs is not part of this program"


def explanation(found: Resolution) -> str:
    """Return one line on what is used, and one for each cause that nothing better is."""
    device = found.device
    name = f"{device.device_type}:{device.parsed_name.index}"
    described = device.attributes.description
    used = f"Using {name} ({described})." if described else f"Using {name}."
    return "\n".join([used, *(_causes(found.rejected) or [f"Why: {found.why}."])])


def _causes(rejected: Iterable[Rejected]) -> list[str]:
    here = [each for each in rejected if not _is_of_another_system(each)]
    lacking = dict.fromkeys(what for each in here if (what := _lacking(each)))
    causes: dict[str, list[Rejected]] = {}
    for each in here:
        if not _lacking(each):
            causes.setdefault(without_pip(each.reason) or _NOT_INSTALLED, []).append(each)
    lines = [_cause(reason, affected) for reason, affected in causes.items()]
    if lacking:
        lines.append(f"Nothing better is here: there is {_joined(lacking, 'and')}.")
    return lines


def _cause(reason: str, affected: Iterable[Rejected]) -> str:
    names = dict.fromkeys(each.name for each in affected)
    fixes = dict.fromkeys(fix for each in affected if (fix := without_pip(each.fix)))
    line = f"Not {_joined(names, 'or')}: {reason}."
    return f"{line}{FIX_INTRODUCTION}{'; or '.join(fixes)}" if fixes else line


def _is_of_another_system(each: Rejected) -> bool:
    return each.state == "absent" and _OTHER_SYSTEM.search(each.reason) is not None


def _lacking(each: Rejected) -> str:
    """Return the hardware that is not here, such as ``no NVIDIA GPU``, where that is all."""
    match = _NO_HARDWARE.match(each.reason)
    return match[1] if match and each.state == "absent" and not each.fix else ""


def _joined(words: Iterable[str], last: str) -> str:
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end
