"""The accelerators of this machine as the system's files show them; nothing is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NVIDIA_GPU, AMD_GPU = "NVIDIA GPU", "AMD GPU"
NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
_MICROSOFT = 0x1414  # in whose name WSL shows the GPUs of Windows

ROOT = Path("/")
SYSTEM: str = sys.platform

_DISPLAY, _ACCELERATOR = 0x03, 0x12  # base classes of the PCI specification


@frozen
class PciGpu:
    """A display controller or an accelerator on the PCI bus.

    Attributes:
        address: Where it is, such as ``"0000:3b:00.0"``.
        device: Its maker's number for what it is.
        numa_node: The NUMA node that it hangs on, or None.
    """

    address: str
    device: int
    numa_node: int | None = None


def pci_gpus(vendor: int, *, accelerators: bool = False) -> list[PciGpu] | None:
    """Return the GPUs of one maker by address; None where the system tells nothing.

    Args:
        vendor: The maker's PCI number.
        accelerators: Also those that are not for displays, as AMD calls its largest ones.
    """
    folders = sorted((ROOT / "sys/bus/pci/devices").glob("*"))
    if not folders:
        return None
    classes = (_DISPLAY, _ACCELERATOR) if accelerators else (_DISPLAY,)
    return [
        PciGpu(folder.name, number(folder / "device"), numa_node(folder.name))
        for folder in folders
        if number(folder / "vendor") == vendor and number(folder / "class") >> 16 in classes
    ]


def numa_node(address: str) -> int | None:
    """Return the NUMA node of the PCI device at *address*, None where there are no nodes."""
    try:
        node = int(_text(ROOT / "sys/bus/pci/devices" / address / "numa_node"))
    except ValueError:
        return None
    return node if node >= 0 else None


def pci_address(text: str) -> str:
    """Return a PCI address in the system's own spelling; drivers pad and capitalise it freely."""
    domain, _, rest = text.strip().lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}" if ":" in rest else f"0000:{domain}:{rest}"
    except ValueError:
        return ""


def physical_id(address: str) -> str | None:
    """Return what tells the GPU at *address* from all others: NVIDIA's UUID, else the address."""
    if not address:
        return None
    lines = _text(ROOT / "proc/driver/nvidia/gpus" / address / "information").splitlines()
    uuids = (line.partition(":")[2].strip() for line in lines if line.startswith("GPU UUID"))
    return next(uuids, address)


def wsl_gpu() -> str | None:
    """Return the id of the one GPU that WSL shows; None elsewhere, and where it shows several.

    WSL shows a GPU of Windows under an address of its own, which no driver knows, so that devices
    on one GPU cannot be told to be so by their addresses. Old versions show no address at all.
    """
    if not exists("dev/dxg"):
        return None
    shown = pci_gpus(_MICROSOFT) or []
    addresses = [gpu.address for gpu in shown] or ["dxg"]
    return addresses[0] if len(addresses) == 1 else None


def cpu_maker() -> str:
    """Return what the processor says of its maker, such as ``"GenuineIntel"``; empty if nothing."""
    lines = _text(ROOT / "proc/cpuinfo").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id"))
    return next(named, "")


def is_here(device_type: str) -> bool | None:
    """Return whether this machine has hardware of a type; None where that cannot be told."""
    known = _KINDS.get(device_type)
    return known[1]() if known else None


def why_absent(device_type: str) -> str:
    """Return why no package brings devices of a type to life here; empty where one may."""
    known = _KINDS.get(device_type)
    return f"there is no {known[0]} here" if known and known[1]() is False else ""


def _has_nvidia_gpu() -> bool | None:
    # The last two are those of Jetson boards, whose GPU is on no bus.
    if any(map(exists, ("dev/nvidia[0-9]*", "dev/nvhost-gpu", "dev/nvgpu"))):
        return True
    if exists("dev/dxg"):  # WSL shows some GPU, not whose
        return None
    gpus = pci_gpus(NVIDIA)
    return None if gpus is None else bool(gpus)


def _has_amd_gpu() -> bool | None:
    if exists("dev/kfd"):
        return True
    gpus = pci_gpus(AMD, accelerators=True)
    return None if gpus is None else bool(gpus)


def _has_intel_gpu() -> bool | None:
    gpus = pci_gpus(INTEL)
    return None if gpus is None else bool(gpus)


def _has_hardware_of_intel() -> bool | None:
    maker, gpus = cpu_maker(), pci_gpus(INTEL, accelerators=True)
    if maker == "GenuineIntel" or gpus:
        return True
    return False if maker and gpus is not None else None


def has_gpu() -> bool | None:
    """Return whether this machine has any GPU; None where that cannot be told.

    The controllers that servers have for a console, and those of virtual machines, are none.
    """
    if any(map(exists, ("dev/dri/renderD*", "dev/nvidia[0-9]*", "dev/nvhost-gpu", "dev/nvgpu"))):
        return True
    if exists("dev/dxg"):
        return None
    by_maker = [pci_gpus(maker, accelerators=True) for maker in (NVIDIA, AMD)]
    by_maker.append(pci_gpus(INTEL))
    return None if None in by_maker else any(by_maker)


def exists(pattern: str) -> bool:
    """Return whether there is a file like *pattern*, such as ``"dev/nvidia[0-9]*"``."""
    return any(ROOT.glob(pattern))


def number(file: Path) -> int:
    """Return the number in *file*, written as the kernel does; 0 where there is none."""
    try:
        return int(_text(file), 0)
    except ValueError:
        return 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


# By device type: what the hardware is called, for a person, and whether it is here.
_KINDS: Mapping[str, tuple[str, Callable[[], bool | None]]] = {
    "CUDA": (NVIDIA_GPU, _has_nvidia_gpu),
    "TENSORRT": (NVIDIA_GPU, _has_nvidia_gpu),
    "ROCM": (AMD_GPU, _has_amd_gpu),
    "XPU": ("Intel GPU", _has_intel_gpu),
    "OPENVINO": ("hardware of Intel", _has_hardware_of_intel),
    "WEBGPU": ("GPU", has_gpu),
}
