"""Why a program uses a device and no better one, for a person who knows neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.errors import without_pip
from devicecore.liveness.causes import is_of_another_system, joined
from devicecore.liveness.causes import lacking as lacking_hardware

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.resolution.resolution import Rejected, Resolution

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
    here = [each for each in rejected if not is_of_another_system(each)]
    lacking = dict.fromkeys(what for each in here if (what := lacking_hardware(each)))
    causes: dict[str, list[Rejected]] = {}
    for each in here:
        if not lacking_hardware(each):
            causes.setdefault(without_pip(each.reason) or _NOT_INSTALLED, []).append(each)
    lines = [_cause(reason, affected) for reason, affected in causes.items()]
    if lacking:
        lines.append(f"Nothing better is here: there is {joined(lacking, 'and')}.")
    return lines


def _cause(reason: str, affected: Iterable[Rejected]) -> str:
    names = dict.fromkeys(each.name for each in affected)
    fixes = dict.fromkeys(fix for each in affected if (fix := without_pip(each.fix)))
    line = f"Not {joined(names, 'or')}: {reason}."
    return f"{line}{FIX_INTRODUCTION}{'; or '.join(fixes)}" if fixes else line
