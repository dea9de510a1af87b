"""Ask a factory whether it is live, and turn whatever it does into a `ProbeResult`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve, field, frozen

from devicecore.errors import BrokenPackageError, shorten
from devicecore.liveness.state import Liveness, PhysicalDevice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from attrs import Attribute

    from devicecore.liveness.state import State

DETAIL_CHARACTERS = 4000


class Probeable(Protocol):
    """What a probe is asked of; factories are it."""

    priority: int | None
    frameworks: tuple[str, ...]

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        """Return whether *framework* works on this machine; with *deep*, run something."""
        ...


def _is_a_number(_: ProbeResult, attribute: Attribute[int | None], value: object) -> None:
    if value is not None and not isinstance(value, int):
        msg = f"its {attribute.name} is {value!r}, not a whole number"
        raise TypeError(msg)


@frozen
class ProbeResult:
    """What a probe brought home.

    Attributes:
        liveness: The probe's answer, or what became of the probe.
        priority: The priority that the factory states, or None.
    """

    liveness: Liveness
    priority: int | None = field(default=None, validator=_is_a_number)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads."""
        return {"liveness": self.liveness.to_json(), "priority": self.priority}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the report that `to_json` wrote.

        Raises:
            KeyError: Something is missing.
            TypeError: Something is of another type.
            ValueError: A value is none that it can have.
        """
        return cls(Liveness.from_json(data["liveness"]), data["priority"])


def read_probe_result(data: Any) -> ProbeResult | None:
    """Return the report that `ProbeResult.to_json` wrote, or None if *data* is none."""
    try:
        return ProbeResult.from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def probe(prober: Probeable, framework: str | None, *, deep: bool = True) -> ProbeResult:
    """Ask *prober* right here, and turn whatever it does into a report."""
    started = time.perf_counter()
    report = ProbeResult(Liveness("untried"))
    try:
        report = evolve(report, priority=prober.priority)
        answer = _asked(prober, framework, deep=deep)
        liveness = Liveness.from_json(answer.to_json())  # whatever it holds can be read back
    except BaseException as error:  # noqa: BLE001 - it may even try to exit
        pass_on_interrupt(error)
        liveness = failure(error)
    return evolve(report, liveness=evolve(liveness, seconds=time.perf_counter() - started))


def _asked(prober: Probeable, framework: str | None, *, deep: bool) -> Liveness:
    served = tuple(prober.frameworks)
    if framework is not None and framework not in served:
        return Liveness("absent", reason=f"nothing in it is for {framework}")
    answer: object = prober.probe(framework, deep=deep)
    if not isinstance(answer, Liveness):
        return broken(f"its probe returned {shorten(repr(answer), 80)}, not a Liveness")
    if answer.is_live and not answer.devices:
        answer = evolve(answer, devices=_listed(prober))
    if answer.frameworks:
        return answer
    about = served if framework is None else (framework,)
    return evolve(answer, frameworks=dict.fromkeys(about, answer))


def _listed(prober: Probeable) -> tuple[PhysicalDevice, ...]:
    """Return the hardware of a probe that found it live and did not say which: one at least."""
    listed: Iterable[PhysicalDevice] = getattr(prober, "list_physical_devices", tuple)()
    device_type = getattr(prober, "device_type", "")
    return tuple(listed) or ((PhysicalDevice(device_type, 0),) if device_type else ())


class ProbesStoppedError(InterruptedError):
    """Somebody has stopped the probes; foreign code may raise the error that it is one of."""

    def __init__(self) -> None:
        super().__init__("the probe was interrupted")


def pass_on_interrupt(error: BaseException) -> None:
    """Raise *error* again if a person pressed Ctrl-C; anything else is foreign code's own."""
    if isinstance(error, (KeyboardInterrupt, ProbesStoppedError)):
        raise error


def failure(error: BaseException) -> Liveness:
    """Return the liveness of what raised *error*, with its whole traceback as the detail."""
    import traceback

    detail = "".join(traceback.format_exception(error))[-DETAIL_CHARACTERS:]
    if isinstance(error, BrokenPackageError):
        state: State = "shadowed" if error.state == "shadowed" else "broken"
        return Liveness(state, reason=error.reason, detail=detail, fix=error.fix)
    return Liveness("broken", reason=_one_line(error), detail=detail)


def broken(reason: str) -> Liveness:
    """Return the liveness of what does not work, because of *reason*."""
    return Liveness("broken", reason=reason)


def _one_line(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - not even the error of foreign code is well made
        text = ""
    return shorten(f"{type(error).__name__}: {text}" if text else type(error).__name__, 300)
