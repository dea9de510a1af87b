"""Answers of several GPUs, and of several frameworks, put together to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.liveness import Liveness, seen_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devicecore.errors import NotLiveError
    from devicecore.liveness import PhysicalDevice, State

# Of several answers that are not live, the one that says most goes first.
_ORDER: tuple[State, ...] = (
    *("live", "untried", "shadowed", "broken", "version_mismatch", "missing", "absent"),
    "excluded",
)
_STATES: Mapping[str, State] = {state: state for state in _ORDER}


def best(answers: Iterable[Liveness]) -> Liveness:
    """Return the answer that is nearest to live; the first of several alike."""
    return min(answers, key=lambda answer: _ORDER.index(answer.state))


def not_live(error: NotLiveError) -> Liveness:
    """Return what *error*, raised where a runtime was opened, says as an answer."""
    state = _STATES.get(error.state, "broken")
    return Liveness(state, "opened", error.reason, fix=error.fix)


def of_gpus(framework: str, tried: Iterable[tuple[PhysicalDevice, Liveness]]) -> Liveness:
    """Return one answer for all GPUs: live if one of them is, and saying why others are not."""
    pairs = list(tried)
    if not pairs:
        return Liveness("absent", "opened", reason="it shows no device")
    gpus = tuple(
        gpu
        if answer.is_live
        else evolve(gpu, details={**gpu.details, _why(framework): answer.reason})
        for gpu, answer in pairs
    )
    first = best(answer for _, answer in pairs)
    detail = "\n".join(
        f"{gpu.device_type}:{gpu.index}: {answer.reason or answer.detail}" for gpu, answer in pairs
    )
    return evolve(first, detail="\n".join(filter(None, (detail, first.detail))), devices=gpus)


def of_frameworks(answers: Mapping[str, Liveness]) -> Liveness:
    """Return the answer for devices as such: that of the framework that is nearest to live."""
    found = best(answers.values())
    if (
        found.state not in {"live", "untried"}
        and len({each.reason for each in answers.values()}) > 1
    ):
        told = "; ".join(f"for {name}: {answer.reason}" for name, answer in answers.items())
        found = evolve(found, reason=told)
    return evolve(found, frameworks=answers, devices=seen_by(answers.values()))


def live_frameworks(gpu: PhysicalDevice, frameworks: Iterable[str]) -> tuple[str, ...]:
    """Return those of the live *frameworks* that work on *gpu* as well."""
    return tuple(each for each in frameworks if _why(each) not in gpu.details)


def _why(framework: str) -> str:
    """Return the key under which a GPU's details say why *framework* does not work on it."""
    return f"why_not_{framework}"
