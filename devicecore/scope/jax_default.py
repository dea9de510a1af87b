"""JAX: the default device of this thread."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import ScopeError
from devicecore.scope.adapter import Adapter

if TYPE_CHECKING:
    from types import ModuleType

    from devicecore.device import Device
    from devicecore.names import DeviceName


class JaxDefault(Adapter):
    """Enters a fresh ``jax.default_device`` each time: JAX keeps the state in the instance.

    What is saved is the device before, and the contexts to leave, the last one first.
    """

    title: ClassVar[str] = "JAX"
    frameworks: ClassVar[frozenset[str]] = frozenset({"jax"})

    def __init__(self, jax: ModuleType) -> None:
        self._jax: Any = jax

    def place_of(self, device: Device) -> Any:
        """Return JAX's device; for CPU:0 the word "cpu", which opens no backend."""
        if not device.is_local:
            raise self.refusal(device, "it is not in this process")
        name = device.memory_device.parsed_name
        chosen = self._jax.config.jax_platforms or "cpu"
        if (name.device_type, name.index) == ("CPU", 0) and "cpu" in chosen.split(","):
            return "cpu"
        devices = self._devices(name)
        if name.index is not None and name.index < len(devices):
            return devices[name.index]
        raise self.refusal(device, f"JAX has {len(devices)} devices of that kind")

    def _devices(self, name: DeviceName) -> Any:
        try:
            return self._jax.local_devices(backend=(name.device_type or "").lower())
        except RuntimeError:  # it has no such backend
            return []

    def knows(self, name: DeviceName) -> bool:
        """Return whether JAX has a backend and a device of that name."""
        return (name.index or 0) < len(self._devices(name))

    def enter(self, place: Any) -> Any:
        """Make *place* the default of this thread."""
        before = self._jax.config.jax_default_device
        if before is place or before == place:
            return (before, ())
        core: Any = sys.modules.get("jax._src.core")
        if core is not None and not getattr(core, "trace_state_clean", lambda: True)():
            msg = f"JAX is tracing a function, and would ignore the scope of {place}"
            raise ScopeError(
                msg,
                "a compiled function runs on one device: that of the scope around its call",
                "enter the scope outside of jax.jit",
            )
        context = self._jax.default_device(place)
        context.__enter__()
        return (before, (context,))

    def leave(self, saved: Any) -> None:
        """Leave the contexts; undo what was set for the whole process meanwhile."""
        before, contexts = saved
        for context in contexts:
            context.__exit__(None, None, None)
        if self._jax.config.jax_default_device != before:
            self._jax.config.update("jax_default_device", before)

    def join(self, upper: Any, lower: Any) -> Any:
        """Return the contexts of both, and the older device."""
        return (lower[0], upper[1] + lower[1])
