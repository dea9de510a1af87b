"""Why a factory serves its type or does not, for every candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from devicecore.device_factory import type_lookup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry
    from devicecore.liveness import Liveness


@frozen
class Candidate:
    """One factory's standing: whether it is live, and why it is not the one taken.

    Attributes:
        registration: Which factory.
        priority: Its priority.
        liveness: Whether it is live; ``shadowed`` if it is, and another of its type goes first.
        chosen: Whether it is the one that serves its type.
        ties: Other factories of its type with the same priority; their names decide the order.
    """

    registration: Registration
    priority: int
    liveness: Liveness
    chosen: bool = False
    ties: tuple[str, ...] = ()


def explain(registry: FactoryRegistry, what: str | None, *, deep: bool) -> list[Candidate]:
    """Return every candidate in order; see `FactoryRegistry.explain`."""
    registrations = registry.factories(what)
    if what is not None and not registrations:
        raise type_lookup.unknown(registry, what)
    if deep:
        _probe_in_waves(registry, registrations)
    served: set[str] = set()
    candidates = []
    for registration in registrations:
        liveness = registry.liveness_of(registration, deep=False)
        if liveness.state == "live" and registration.device_type in served:
            reason = "another factory of its type goes first"
            liveness = evolve(liveness, state="shadowed", reason=reason)
        chosen = liveness.state == "live"
        if chosen:
            served.add(registration.device_type)
        candidates.append(
            Candidate(
                registration,
                registry.priority_of(registration),
                liveness,
                chosen,
                _ties(registry, registration, registrations),
            )
        )
    return candidates


def _probe_in_waves(registry: FactoryRegistry, registrations: Sequence[Registration]) -> None:
    """Probe first those that wait for nothing, then those whose class turned out to be live."""
    registry.probe([entry for entry in registrations if entry.after_class is None])
    classes = {
        device.device_class
        for entry in registry.factories()
        if (liveness := registry.liveness_of(entry, deep=False)).is_live
        for device in liveness.devices
    }
    registry.probe([entry for entry in registrations if entry.after_class in classes])


def _ties(
    registry: FactoryRegistry, registration: Registration, others: Sequence[Registration]
) -> tuple[str, ...]:
    return tuple(
        other.origin
        for other in others
        if other != registration
        and other.device_type == registration.device_type
        and registry.priority_of(other) == registry.priority_of(registration)
    )
