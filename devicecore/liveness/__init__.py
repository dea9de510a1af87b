"""Whether a device type works on this machine, how that is known, and why not."""

from devicecore.liveness.state import Evidence, Liveness, PhysicalDevice, State

__all__ = ["Evidence", "Liveness", "PhysicalDevice", "State"]
