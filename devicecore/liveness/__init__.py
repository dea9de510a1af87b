"""Whether a device type works on this machine, how that is known, and why not."""

from devicecore.liveness.state import Evidence, Liveness, PhysicalDevice, State, seen_by

__all__ = ["Evidence", "Liveness", "PhysicalDevice", "State", "seen_by"]


def __dir__() -> list[str]:
    return sorted(__all__)
