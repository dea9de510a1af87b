"""GPUs as the system's files show them; the files are copies of what such machines have.

None of this hardware was there when these were written: the formats are those of the kernel's
documentation, and of NVIDIA's driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devicecore.liveness import hardware as _hardware
from devicecore_factories import _amd

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an empty tree in place of the system's files."""
    monkeypatch.setattr(_hardware, "ROOT", tmp_path)
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def pci(root: Path, address: str, vendor: int, kind: int = 0x030200, node: int = 0) -> None:
    """Put a device on the PCI bus."""
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, value in (("vendor", vendor), ("class", kind), ("device", 0x2331)):
        (folder / name).write_text(f"{value:#06x}\n")
    (folder / "numa_node").write_text(f"{node}\n")


def kfd(root: Path, node: int, **facts: int) -> None:
    """Put a node into the list of AMD's kernel driver."""
    folder = root / f"sys/class/kfd/kfd/topology/nodes/{node}"
    (folder / "mem_banks/0").mkdir(parents=True)
    text = "".join(f"{key} {value}\n" for key, value in facts.items())
    (folder / "properties").write_text(text)
    (folder / "mem_banks/0/properties").write_text(f"heap_type 1\nsize_in_bytes {192 << 30}\n")


def test_a_system_without_a_bus_tells_nothing(root: Path) -> None:
    assert _hardware.pci_gpus(_hardware.NVIDIA) is None
    assert _hardware.is_here("CUDA") is None
    assert _hardware.is_here("ROCM") is None


def test_gpus_are_told_by_maker_and_class(root: Path) -> None:
    pci(root, "0000:00:00.0", _hardware.INTEL, 0x060000)  # a bridge
    pci(root, "0000:5e:00.0", _hardware.NVIDIA, node=1)
    pci(root, "0000:3b:00.0", _hardware.NVIDIA, 0x030000)
    pci(root, "0000:3b:00.1", _hardware.NVIDIA, 0x040300)  # the same GPU's sound
    gpus = _hardware.pci_gpus(_hardware.NVIDIA)
    assert [(gpu.address, gpu.numa_node) for gpu in gpus or ()] == [
        ("0000:3b:00.0", 0),
        ("0000:5e:00.0", 1),
    ]
    assert _hardware.pci_gpus(_hardware.INTEL) == []
    assert _hardware.is_here("CUDA") is True


def test_a_bus_without_a_gpu_means_there_is_none(root: Path) -> None:
    pci(root, "0000:00:00.0", _hardware.INTEL, 0x060000)
    assert _hardware.is_here("CUDA") is False
    assert _hardware.is_here("ROCM") is False


@pytest.mark.parametrize(
    ("file", "answer"),
    [("dev/nvidia0", True), ("dev/nvidiactl", False), ("dev/nvhost-gpu", True), ("dev/dxg", None)],
)
def test_device_files_tell_where_the_bus_does_not(
    root: Path, file: str, answer: bool | None
) -> None:
    pci(root, "0000:00:00.0", _hardware.INTEL, 0x060000)
    (root / "dev").mkdir()
    (root / file).touch()
    assert _hardware.is_here("CUDA") is answer


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:3B:00.0", "0000:3b:00.0"),
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("0001:3b:00.0", "0001:3b:00.0"),
        ("nonsense:0:0", ""),
    ],
)
def test_drivers_spell_addresses_in_several_ways(text: str, address: str) -> None:
    assert _hardware.pci_address(text) == address


def test_nvidia_gpus_go_by_their_uuid_and_others_by_their_address(root: Path) -> None:
    folder = root / "proc/driver/nvidia/gpus/0000:3b:00.0"
    folder.mkdir(parents=True)
    uuid = "GPU-8f2e4a3c-1111-2222-3333-444455556666"
    (folder / "information").write_text(
        f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 20\nGPU UUID: \t {uuid}\n"
    )
    assert _hardware.physical_id("0000:3b:00.0") == uuid
    assert _hardware.physical_id("0000:5e:00.0") == "0000:5e:00.0"
    assert _hardware.physical_id("") is None


@pytest.fixture
def two_amd_gpus(root: Path) -> Path:
    """A host with two processors and two GPUs, as ROCm's kernel driver lists it."""
    kfd(root, 0, cpu_cores_count=96, simd_count=0)
    kfd(root, 2, cpu_cores_count=0, simd_count=1216, location_id=0x2600, domain=0, unique_id=0xAB)
    kfd(root, 10, cpu_cores_count=0, simd_count=1216, location_id=0x5D08, domain=1, unique_id=0xCD)
    return root


def test_amd_gpus_come_in_the_order_of_the_kernel_driver(two_amd_gpus: Path) -> None:
    first, second = _amd.gpus()
    assert (first.index, first.physical_id) == (0, "0000:26:00.0")
    assert (second.index, second.physical_id) == (1, "0001:5d:01.0")
    assert first.memory_bytes == 192 << 30


@pytest.mark.parametrize(
    ("variables", "addresses"),
    [
        ({"HIP_VISIBLE_DEVICES": "1"}, ["0001:5d:01.0"]),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, ["0001:5d:01.0", "0000:26:00.0"]),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, ["0000:26:00.0"]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-cd", "HIP_VISIBLE_DEVICES": "0"}, ["0001:5d:01.0"]),
        ({"HIP_VISIBLE_DEVICES": "7,0"}, []),
        ({"HIP_VISIBLE_DEVICES": ""}, []),
    ],
)
def test_variables_hide_and_reorder_amd_gpus(
    two_amd_gpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    addresses: list[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    gpus = _amd.gpus()
    assert [gpu.physical_id for gpu in gpus] == addresses
    assert [gpu.index for gpu in gpus] == list(range(len(addresses)))
