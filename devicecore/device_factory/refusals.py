"""Why no device of a class is here: what each type that could have one says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.liveness.causes import Refusal
from devicecore.names import DEVICE_CLASSES, types_of_class

if TYPE_CHECKING:
    from devicecore.device_factory.registry import FactoryRegistry


def refusals(
    registry: FactoryRegistry, device_class: str, framework: str | None = None, *, deep: bool
) -> list[Refusal]:
    """Return what the types say that could have devices of *device_class*, and have none.

    Args:
        registry: Whose types.
        device_class: The class.
        framework: What a device must be live for; None for anything.
        deep: Whether to probe what was not tried yet.
    """
    answers = [
        (entry, registry.liveness_of(entry, framework, deep=deep)) for entry in registry.factories()
    ]
    live = {entry.device_type for entry, answer in answers if answer.is_live}
    others = {each for other in DEVICE_CLASSES - {device_class} for each in types_of_class(other)}
    found = []
    for entry, answer in answers:
        name = entry.device_type
        # The host, what is of another class on any machine, and what no class means.
        if name in DEVICE_CLASSES or name in others or entry.after_class or entry.only_named:
            continue
        if answer.is_live:
            found.append(Refusal(name, "absent", f"it has no device of class {device_class} here"))
        elif answer.state == "untried":
            found.append(Refusal(name, answer.state, f"not tried yet, {answer.reason}"))
        elif name not in live:  # else another factory of the type told
            found.append(Refusal(name, answer.state, answer.reason, answer.fix))
    return found
