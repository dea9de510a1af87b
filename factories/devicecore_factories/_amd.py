"""AMD's GPUs as ROCm's kernel driver lists them in the system's files, in the order of HIP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore_factories import _visibility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TITLE = _hardware.AMD_GPU
DRIVER_FIX = "install ROCm's driver, and join the groups render and video"

_NODES = "sys/class/kfd/kfd/topology/nodes"
# Each filters what the one before let through; HIP reads CUDA's only where its own is not set.
_VARIABLES = (("ROCR_VISIBLE_DEVICES",), ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"))


def hidden() -> Liveness | None:
    """Return what hides all GPUs from HIP in this process; None if nothing is known to."""
    _, hider = _shown()
    return _visibility.hides(hider, TITLE) if hider else None


def gpus() -> list[PhysicalDevice]:
    """Return the GPUs that HIP shows to this process, in its order."""
    found, _ = _shown()
    return [evolve(gpu, index=index) for index, gpu in enumerate(found)]


def _shown() -> tuple[list[PhysicalDevice], str]:
    """Return the GPUs that the variables let through, and the variable that hides the last."""
    folders = sorted((_hardware.ROOT / _NODES).glob("[0-9]*"), key=lambda node: int(node.name))
    nodes = [(folder, _properties(folder / "properties")) for folder in folders]
    found = [_gpu(folder, facts) for folder, facts in nodes if facts.get("simd_count")]
    hider = ""
    for names in _VARIABLES:
        name = next((name for name in names if _visibility.value_of(name) is not None), "")
        if name and found:
            found = _chosen(found, _visibility.value_of(name) or "")
            hider = "" if found else name
    return found, hider


def _gpu(folder: Path, facts: Mapping[str, int]) -> PhysicalDevice:
    place = facts.get("location_id", 0)
    bus, slot, function = place >> 8, place >> 3 & 0x1F, place & 7
    address = f"{facts.get('domain', 0):04x}:{bus:02x}:{slot:02x}.{function}"
    banks = (folder / "mem_banks").glob("*/properties")
    return PhysicalDevice(
        "ROCM",
        0,
        address,
        TITLE,
        memory_bytes=sum(_properties(bank).get("size_in_bytes", 0) for bank in banks),
        numa_node=_hardware.numa_node(address),
        details={"pci_bus_id": address, "unique_id": f"{facts.get('unique_id', 0):x}"},
    )


def _chosen(found: Sequence[PhysicalDevice], text: str) -> list[PhysicalDevice]:
    """Return the GPUs that *text* names, by number or as ``GPU-`` and their unique id."""
    names = {str(index): gpu for index, gpu in enumerate(found)}
    names |= {f"gpu-{gpu.details['unique_id']}": gpu for gpu in found}
    chosen = []
    for part in text.lower().split(","):
        if part.strip() not in names:  # as HIP does: what comes after a wrong one is hidden too
            break
        chosen.append(names[part.strip()])
    return chosen


def _properties(file: Path) -> dict[str, int]:
    try:
        lines = file.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # those of GPUs that this user may not open cannot be read
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}  # noqa: PLR2004 - a name and a number
