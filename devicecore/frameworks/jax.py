"""JAX: its arrays, its devices, and the default device of a thread."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import ScopeError
from devicecore.frameworks.base.adapter import Adapter, Context
from devicecore.frameworks.base.framework import Framework
from devicecore.frameworks.base.leaf import LeafKind, MoveFailedError, absent, place_of
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from devicecore.device import Device
    from devicecore.transfer.request import Request
    from devicecore.transfer.target import Target


class JaxDefault(Adapter):
    """Enters a fresh ``jax.default_device`` each time: JAX keeps the state in the instance.

    What is saved is the default of the process, the contexts to leave, the last one first, and what
    had set that default last. A thread's context goes before that default, so whatever sets it
    inside of a scope takes effect afterwards, and only in other threads at once.
    """

    title: ClassVar[str] = "JAX"
    frameworks: ClassVar[frozenset[str]] = frozenset({"jax"})

    def __init__(self, jax: ModuleType) -> None:
        self._jax: Any = jax
        # Of a JAX that keeps it elsewhere, the default of the process is left alone.
        state: Any = getattr(sys.modules.get("jax._src.config"), "default_device", None)
        self._process: Any = state if hasattr(state, "_update_global_hook") else None
        self._last_set: tuple[int, object] = (0, None)
        if self._process is not None:
            self._notice_who_sets(self._process)

    def _notice_who_sets(self, process: Any) -> None:
        told = process._update_global_hook  # noqa: SLF001 - JAX tells nobody else

        def tell(value: Any) -> None:
            self._last_set = (get_ident(), object())
            if told is not None:
                told(value)

        process._update_global_hook = tell  # noqa: SLF001 - see above

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
        wish = self._jax.config.jax_platforms
        limited = f", limited to JAX_PLATFORMS={wish}" if wish else ""
        raise self.refusal(device, f"JAX has {len(devices)} devices of that kind{limited}")

    def _devices(self, name: DeviceName) -> Any:
        try:
            return self._jax.local_devices(backend=(name.device_type or "").lower())
        except (RuntimeError, AssertionError):  # it has no such backend, or none at all
            return []

    def knows(self, name: DeviceName) -> bool:
        """Return whether JAX has a backend and a device of that name."""
        return (name.index or 0) < len(self._devices(name))

    def save(self, place: Any) -> Any:
        """Return the context to enter, none if *place* is the default already."""
        before = self._jax.config.jax_default_device
        process = None if self._process is None else self._process.get_global()
        if before is place or before == place:
            return (process, (), self._last_set)
        core: Any = sys.modules.get("jax._src.core")
        if core is not None and not getattr(core, "trace_state_clean", lambda: True)():
            if self._first(before) == self._first(place):
                return (process, (), self._last_set)
            msg = f"JAX is tracing a function, and would ignore the scope of {place}"
            raise ScopeError(
                msg,
                "a compiled function runs on one device: that of the scope around its call",
                "enter the scope outside of jax.jit",
            )
        return (process, (Context(self._jax.default_device(place)),), self._last_set)

    def set(self, place: Any, saved: Any) -> None:
        """Make *place* the default of this thread."""
        del place
        for context in saved[1]:
            context.enter()

    def _first(self, place: Any) -> Any:
        """Return the device that *place* is, for a platform or None the first one of it."""
        is_device = not (place is None or isinstance(place, str))
        return place if is_device else self._jax.local_devices(backend=place)[0]

    def leave(self, saved: Any) -> None:
        """Leave the contexts; undo what this thread has set for the process meanwhile."""
        process, contexts, last_set = saved
        for context in contexts:
            context.leave()
        if self._last_set is not last_set and self._last_set[0] == get_ident():
            self._jax.config.update("jax_default_device", process)

    def join(self, upper: Any, lower: Any) -> Any:
        """Return the contexts of both, and the older default."""
        return (lower[0], upper[1] + lower[1], lower[2])


class JaxArrays(LeafKind):
    """Arrays of JAX; all of them go in one call."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere; what is being traced lies nowhere."""
        if isinstance(value, sys.modules["jax"].core.Tracer):
            return False
        device = self._device(request.target)
        return device is None or value.devices() != {device}

    def move(self, values: Sequence[Any], request: Request) -> list[Any]:
        """Return the arrays on the target."""
        device = self._device(request.target)
        if device is None:
            raise MoveFailedError(0, absent("JAX", request.target))
        try:
            moved: list[Any] = sys.modules["jax"].device_put(list(values), device)
            if not request.non_blocking or (request.target.is_host and request.wait):
                sys.modules["jax"].block_until_ready(moved)
        except Exception as error:
            raise MoveFailedError(0, error) from error
        return moved

    def _device(self, target: Target) -> Any:
        kind, index = place_of(target)
        try:
            devices = sys.modules["jax"].local_devices(backend="gpu" if kind == "cuda" else kind)
        except RuntimeError:  # it knows no such backend
            return None
        return devices[index] if index < len(devices) else None


class Jax(Framework):
    """JAX."""

    module: ClassVar[str] = "jax"
    marker: ClassVar[str] = "jax._src"
    array: ClassVar[str] = "Array"
    uses: ClassVar[tuple[str, ...]] = ("Array", "default_device", "local_devices", "config.update")
    leaf: ClassVar[LeafKind | None] = JaxArrays()

    def adapters(self, module: ModuleType) -> Sequence[Adapter]:
        """Return what sets the default device of a thread."""
        return (JaxDefault(module),)

    def name_of_device(self, device: Any, kind: str) -> DeviceName | None:
        """Return the name of a ``jax.Device``, which may be in another process."""
        del kind
        if not hasattr(device, "platform"):
            return None
        version = str(getattr(device.client, "platform_version", ""))
        gpu = "ROCM" if "rocm" in version.lower() else "CUDA"
        device_type = gpu if device.platform in {"gpu", "cuda", "rocm"} else device.platform
        if device.process_index != device.client.process_index():
            return DeviceName("worker", 0, device.process_index, device_type, device.id)
        index = device.client.local_devices().index(device)
        return DeviceName(device_type=device_type, index=index)

    def to_torch(self, torch: Any, array: Any) -> Any:
        """Return a copy: to JAX its arrays never change, and torch could write into this one."""
        return super().to_torch(torch, array).clone()


FRAMEWORK = Jax()
