"""Variables that hide devices from their drivers: what they show, and who set them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore import config
from devicecore.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGITS = re.compile(r"\d+")
_HOW_TO_ASK = {
    "Ray": "ask Ray for a GPU, as in @ray.remote(num_gpus=1)",
    "SLURM": "ask SLURM for a GPU, as in --gpus=1",
    "Jupyter": "unset {name} and restart the kernel",
}


def value_of(name: str) -> str | None:
    """Return the value of the variable *name*; None where it is not set."""
    return config.load().visible.get(name)


def hides(name: str, title: str) -> Liveness:
    """Return the answer for hardware that the variable *name* hides from this process.

    Args:
        name: The variable.
        title: What the hardware is called, for a person.
    """
    settings = config.load()
    asked = _HOW_TO_ASK.get(settings.host_program, "unset {name} before the program starts")
    setter = f"; {settings.host_program} may have set it" if settings.host_program else ""
    reason = f"{name}={settings.visible.get(name, '')!r} hides every {title}{setter}"
    return Liveness("excluded", reason=reason, fix=asked.format(name=name))


def because_of(reason: str, *names: str) -> str:
    """Return *reason* with the variables among *names* that are set, which may be the cause."""
    visible = config.load().visible
    told = [f"{name}={visible[name]!r}" for name in names if name in visible]
    return f"{reason}; {' and '.join(told)} may hide it" if told else reason


def shown_by_cuda(text: str, count: int | None, uuids: Iterable[str]) -> bool:
    """Return whether ``CUDA_VISIBLE_DEVICES`` shows any GPU, as the CUDA runtime reads it.

    The first entry that is wrong hides itself and all after it; one given twice hides all.

    Args:
        text: The variable's value.
        count: How many GPUs there are; None if unknown.
        uuids: The GPUs' UUIDs, such as ``"GPU-8f2e…"``; empty if unknown.
    """
    parts = [part.strip() for part in text.split(",")]
    known = [uuid.casefold() for uuid in uuids]
    entries: list[str] = []
    for part in parts:
        number = _DIGITS.match(part)
        if part[:4].upper() == "GPU-" and known:
            right = any(uuid.startswith(part.casefold()) for uuid in known)
        elif part[:4].upper() in ("GPU-", "MIG-"):
            right = True
        else:
            right = number is not None and (count is None or int(number[0][:9]) < count)
        if not right:
            break
        entry = number[0] if number else part.casefold()
        if entry in entries:
            return False
        entries.append(entry)
    return bool(entries)


def shown_by_level_zero(selector: str | None, mask: str | None, count: int) -> tuple[bool, bool]:
    """Return whether ``ONEAPI_DEVICE_SELECTOR`` and ``ZE_AFFINITY_MASK`` each show any GPU.

    Args:
        selector: The value of the first; None if it is not set.
        mask: The value of the second.
        count: How many GPUs there are.
    """
    by_mask = not mask or any(_is_below(part, count) for part in mask.split(","))
    if not selector:
        return True, by_mask
    terms = [term.strip().lower() for term in selector.split(";") if term.strip()]
    accepted = [term for term in terms if not term.startswith("!")]
    refused = [term[1:] for term in terms if term.startswith("!")]
    by_selector = (not accepted or any(_selects(term, count) for term in accepted)) and not any(
        _selects(term, 0) for term in refused
    )
    return by_selector, by_mask


def _selects(term: str, count: int) -> bool:
    """Return whether *term* selects a GPU of Level Zero: all, or one whose number is below."""
    backend, _, devices = term.partition(":")
    return backend.strip() in ("level_zero", "*") and any(
        part.strip() in ("*", "gpu") or _is_below(part, count) for part in devices.split(",")
    )


def _is_below(text: str, count: int) -> bool:
    number = _DIGITS.match(text.strip())
    return number is not None and int(number[0][:9]) < count
