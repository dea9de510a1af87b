"""`BackendFactory`: what the factories of all backends share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import evolve

from devicecore.device import DeviceLocality
from devicecore.device_factory import DeviceFactory, DeviceOptions
from devicecore.liveness import Liveness
from devicecore.liveness import hardware as _hardware
from devicecore_factories import _answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.liveness import PhysicalDevice

_SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}


class BackendFactory(DeviceFactory):
    """Looks first, tries only what looks right, and makes a device for each GPU that was seen.

    Without the hardware nothing else is looked at: no package and no driver would help. The same
    holds for hardware that a variable hides.

    Attributes:
        hardware: What the GPUs are called, for a person.
        systems: The values of ``sys.platform`` that it exists for.
    """

    hardware: ClassVar[str]
    systems: ClassVar[tuple[str, ...]] = tuple(_SYSTEMS)

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        if not self.exists_here():
            systems = " and ".join(_SYSTEMS[system] for system in self.systems)
            return Liveness("absent", reason=f"{self.device_type} exists on {systems} only")
        if self.is_here() is False:
            return Liveness("absent", reason=f"there is no {self.hardware} here")
        if (hidden := self.hidden()) is not None:
            return hidden
        asked = self.frameworks if framework is None else (framework,)
        found = _answers.of_frameworks({name: self._answer(name, deep=deep) for name in asked})
        return found if framework is None else found.frameworks[framework]

    def _answer(self, framework: str, *, deep: bool) -> Liveness:
        seen = self.look(framework)
        return self.try_out(framework) if deep and seen.state == "untried" else seen

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        seen = options.physical or tuple(self.list_physical_devices())
        made = []
        for gpu in options.chosen(self.device_type, seen):
            live = _answers.live_frameworks(gpu, options.frameworks or self.frameworks)
            if live:
                name = f"{name_prefix}/device:{self.device_type}:{gpu.index}"
                made.append(self.make(gpu, name, evolve(options, frameworks=live)))
        return made

    def exists_here(self) -> bool:
        """Return whether this system is one that the backend exists for."""
        return _hardware.SYSTEM in self.systems

    def is_here(self) -> bool | None:
        """Return whether this machine has such hardware; None where that cannot be told."""
        return _hardware.is_here(self.device_type)

    def hidden(self) -> Liveness | None:
        """Return what hides all such hardware from this process; None if nothing is known to."""
        return None

    @abstractmethod
    def look(self, framework: str) -> Liveness:
        """Return what files say about *framework*; ``untried`` if it is worth a try."""

    @abstractmethod
    def try_out(self, framework: str) -> Liveness:
        """Run something on every GPU and return what came of it; in a child process."""

    @abstractmethod
    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        """Return the device on *gpu*, live for ``options.frameworks``; opens nothing."""


def facts_of(gpu: PhysicalDevice, options: DeviceOptions) -> dict[str, Any]:
    """Return the arguments of a `Device` that *gpu* and *options* decide."""
    return {
        "device_class": gpu.device_class,
        "description": gpu.description,
        "physical_id": gpu.physical_id,
        "memory_limit": options.memory_limit or gpu.memory_bytes,
        "locality": DeviceLocality(gpu.details.get("pci_bus_id", ""), gpu.numa_node),
        "frameworks": options.frameworks,
    }
