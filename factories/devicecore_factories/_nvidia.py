"""NVIDIA's driver: whether it is there, and its GPUs in the order of the CUDA runtime.

The driver's own library is asked, since the numbers of CUDA are not those of NVML, and since it
obeys ``CUDA_VISIBLE_DEVICES``. Asking it starts it, and what was started does not survive a fork;
so that happens in a child process only.
"""

from __future__ import annotations

import ctypes
import sys

from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore_factories import _visibility

TITLE = _hardware.NVIDIA_GPU

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_TIMEOUT_S = 20.0
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NO_DEVICE, _STUB, _MISMATCH = 100, 34, 803  # CUresult
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute


def hidden() -> Liveness | None:
    """Return what hides all GPUs from CUDA in this process; None if nothing is known to."""
    value = _visibility.value_of(_VISIBLE)
    if value is None:
        return None
    nodes = len(list((_hardware.ROOT / "dev").glob("nvidia[0-9]*")))
    folders = (_hardware.ROOT / "proc/driver/nvidia/gpus").glob("*")
    uuids = [_hardware.physical_id(folder.name) or "" for folder in folders]
    if _visibility.shown_by_cuda(value, nodes or None, [u for u in uuids if u.startswith("GPU-")]):
        return None
    return _visibility.hides(_VISIBLE, TITLE)


def driver_metadata() -> Liveness:
    """Return whether the driver's library can be loaded; that starts nothing."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return Liveness(
            "missing",
            reason=f"NVIDIA's driver is not there: {_LIBRARY} cannot be loaded",
            fix="install NVIDIA's driver; start a container with its GPUs (--gpus all)",
        )
    return Liveness("untried", reason="NVIDIA's driver is installed")


class CudaDriver:
    """Asks the driver for its GPUs; building one starts the driver in this process.

    Raises:
        NotLiveError: The driver is missing, or does not start; its own words are the reason.
    """

    priority = None
    frameworks = ()

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL(_LIBRARY)
        except OSError:
            found = driver_metadata()
            raise NotLiveError("CUDA", found.state, found.reason, found.fix) from None
        self._call("cuInit", 0)

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        """Return the GPUs; so that a child process can be asked for them."""
        del framework, deep
        return Liveness("untried", "opened", devices=tuple(self.gpus()))

    def gpus(self) -> list[PhysicalDevice]:
        """Return the GPUs that CUDA shows to this process, in its order."""
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        return [self._gpu(index) for index in range(count.value)]

    def _gpu(self, index: int) -> PhysicalDevice:
        from uuid import UUID  # late: only a GPU needs it

        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), index)
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), device)
        address = ctypes.create_string_buffer(32)
        self._call("cuDeviceGetPCIBusId", address, len(address), device)
        memory = ctypes.c_size_t()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        uuid = (ctypes.c_ubyte * 16)()
        # The second version tells the parts of one GPU apart (MIG); older drivers lack it.
        ask = (
            "cuDeviceGetUuid_v2" if hasattr(self._cuda, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"
        )
        self._call(ask, ctypes.byref(uuid), device)
        label = name.value.decode(errors="replace")
        where = _hardware.pci_address(address.value.decode(errors="replace"))
        prefix = "MIG" if " MIG " in label else "GPU"
        return PhysicalDevice(
            "CUDA",
            index,
            f"{prefix}-{UUID(bytes=bytes(uuid))}",
            label,
            memory_bytes=memory.value,
            numa_node=_hardware.numa_node(where),
            details={
                "pci_bus_id": where,
                "compute_capability": f"{self._attribute(_MAJOR, device)}"
                f".{self._attribute(_MINOR, device)}",
            },
        )

    def _attribute(self, which: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    def _call(self, function: str, *args: object) -> None:
        if code := getattr(self._cuda, function)(*args):
            raise self._error(code)

    def _error(self, code: int) -> NotLiveError:
        said = ctypes.c_char_p()
        self._cuda.cuGetErrorString(code, ctypes.byref(said))
        reason = f"NVIDIA's driver: {(said.value or b'error').decode(errors='replace')} ({code})"
        if code == _NO_DEVICE:
            return NotLiveError("CUDA", "absent", _visibility.because_of(reason, _VISIBLE))
        if code == _STUB:
            return NotLiveError("CUDA", "missing", reason, "install NVIDIA's driver")
        return NotLiveError("CUDA", "broken", reason, "restart" if code == _MISMATCH else "")


def id_under_wsl() -> str | None:
    """Return the id of the one GPU that WSL shows: NVIDIA's UUID if it is one of NVIDIA's.

    Asks the driver, so it is called in a child process. None where `_hardware.wsl_gpu` is.
    """
    known = _hardware.wsl_gpu()
    if known is None:
        return None
    try:
        gpus = CudaDriver().gpus()
    except NotLiveError:
        return known
    return gpus[0].physical_id if len(gpus) == 1 else None


def gpus_from_child() -> tuple[PhysicalDevice, ...]:
    """Return the GPUs in the order of CUDA, with the driver started in a child process only."""
    if driver_metadata().state != "untried" or getattr(sys, "frozen", False):
        return ()
    from devicecore.liveness.isolation import probe_in_child  # late: it imports subprocess

    report = probe_in_child(f"{__name__}:{CudaDriver.__qualname__}", None, _TIMEOUT_S)
    return report.liveness.devices
