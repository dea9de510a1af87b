"""The CPU: the host itself, and its page-locked form beside a GPU."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.config import host_memory_bytes
from devicecore.device import Device
from devicecore.device_factory import DeviceFactory, DeviceOptions
from devicecore.errors import BrokenPackageError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness.probe_result import failure
from devicecore.optional import installed, require
from devicecore.optional.faults import package_fault
from devicecore.ort import SessionSpec, probe_provider, provider_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROVIDER = "CPUExecutionProvider"
_MODULES = {"torch": "torch", "onnx": "onnxruntime"}


class CpuDevice(Device):
    """The host's processor, with a pool of threads for asynchronous calls."""

    def memory_stats(self) -> dict[str, int]:
        """Return ``limit``, and where psutil is installed ``available`` and ``used``, in bytes."""
        stats = super().memory_stats()
        if installed("psutil"):
            memory = require("psutil", extra="cli").virtual_memory()
            stats |= {"available": memory.available, "used": memory.used}
        return stats


class PageLockedCpuDevice(CpuDevice):
    """The host, allocating memory that a GPU copies from without the CPU's help."""

    def allocate(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a page-locked numpy array; a pageable one in a forked child."""
        if self._forked:
            return super().allocate(shape, dtype)
        torch = require("torch", extra="torch")
        return torch.empty(tuple(shape), dtype=getattr(torch, dtype), pin_memory=True).numpy()

    _forked = False

    def after_fork(self) -> None:
        """Stop page-locking: the driver's context does not survive a fork."""
        self._forked = True
        super().after_fork()


class ThreadPoolDeviceFactory(DeviceFactory):
    """The host: always live, whatever becomes of the frameworks on it."""

    device_type = "CPU"
    priority = 60
    frameworks = ("torch", "onnx")

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        if framework is not None:
            return _probe_torch(deep=deep) if framework == "torch" else _probe_onnx(deep=deep)
        return Liveness(
            "live",
            "ran",
            reason="the host runs this program",
            frameworks={
                "torch": _probe_torch(deep=deep),
                "onnx": _probe_onnx(deep=deep),
            },
            devices=tuple(self.list_physical_devices()),
        )

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return (
            PhysicalDevice(
                "CPU",
                0,
                physical_id="cpu",
                description=_processor(),
                device_class="CPU",
                memory_bytes=host_memory_bytes(),
            ),
        )

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        return [
            self._create(index, options, name_prefix)
            for index in range(options.device_count.get("CPU", 1))
        ]

    def runs_here(self, framework: str | None) -> bool:
        asked = _MODULES.values() if framework is None else (_MODULES[framework],)
        return all(module in sys.modules or not installed(module) for module in asked)

    def _create(self, index: int, options: DeviceOptions, name_prefix: str) -> Device:
        return self._device_class(
            f"{name_prefix}/device:CPU:{index}",
            description=_processor(),
            physical_id="cpu",
            memory_limit=options.memory_limit or host_memory_bytes(),
            frameworks=options.frameworks,
            torch_device="cpu" if installed("torch") else None,
            session=SessionSpec(_PROVIDER),
            threads=options.threads,
        )

    _device_class: type[Device] = CpuDevice


class GPUCompatibleCPUFactory(ThreadPoolDeviceFactory):
    """The host beside a live GPU: takes the type over where page-locking works."""

    priority = 70
    _device_class = PageLockedCpuDevice

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        locked = _probe_page_locking(deep=deep)
        if not locked.is_live:
            return locked
        return super().probe(framework, deep=deep)


def _probe_torch(*, deep: bool) -> Liveness:
    if fault := package_fault("torch"):
        return Liveness(fault.state, reason=fault.reason, fix=fault.fix)
    if not installed("torch"):
        fix = "pip install 'devicecore[torch]'"
        return Liveness("missing", reason="torch is not installed", fix=fix)
    if not deep:
        return Liveness("untried", reason="torch is installed; nothing was run yet")
    try:
        torch = require("torch", extra="torch")
    except BrokenPackageError as error:
        return failure(error)
    product = (torch.arange(6).reshape(2, 3) @ torch.arange(6).reshape(3, 2)).tolist()
    if product != [[10, 13], [28, 40]]:
        return Liveness("broken", "ran", reason=f"torch computes {product} on the CPU")
    return Liveness("live", "ran", reason=f"torch {torch.__version__} computed on the CPU")


def _probe_onnx(*, deep: bool) -> Liveness:
    found = provider_metadata(_PROVIDER)
    if found.state != "untried" or not deep:
        return found
    return probe_provider(SessionSpec(_PROVIDER))


def _probe_page_locking(*, deep: bool) -> Liveness:
    if not installed("torch"):
        return Liveness("missing", reason="page-locked memory comes from torch")
    if not deep:
        return Liveness("untried", reason="no memory was page-locked yet")
    torch = require("torch", extra="torch")
    try:
        locked = torch.empty(1, pin_memory=True).is_pinned()
    except RuntimeError as error:
        return Liveness("absent", reason="torch cannot page-lock memory", detail=str(error))
    if not locked:
        return Liveness("absent", reason="torch page-locks no memory here")
    return Liveness("live", "ran", reason="memory was page-locked")


def _processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or f"{os.cpu_count()} CPUs"
