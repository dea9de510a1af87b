"""torch's names of one GPU: tensors say ``mps:0`` where programs write ``mps``; no Mac is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devicecore.device import Device
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import NoKernelError
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.names import canonical_torch_device

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")


class FakeTensor(torch.Tensor):
    """A tensor that says that it lies elsewhere."""

    lies_on = ""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device(self.lies_on)


def tensor_on(device: str) -> FakeTensor:
    made = torch.zeros(1).as_subclass(FakeTensor)
    made.lies_on = device
    return made


@pytest.mark.parametrize("device_says", ["mps", "mps:0"])
@pytest.mark.parametrize("tensor_says", ["mps", "mps:0"])
def test_a_gpu_is_the_same_with_and_without_its_index(device_says: str, tensor_says: str) -> None:
    kernels = KernelRegistry()
    kernels.register(Kernel("op", lambda device, *_: device.label, "MPS"))
    manager = DeviceMgr([Device("/device:MPS:0", torch_device=device_says, registry=kernels)])
    assert manager.compute("op", [tensor_on(tensor_says), 3]) == "MPS:0"
    with pytest.raises(NoKernelError, match="mps:1"):
        manager.compute("op", tensor_on("mps:1"))


@pytest.mark.parametrize("text", ["cpu", "meta", "cuda:1", "npu:3", "meta:200"])
def test_names_are_those_of_tensors(text: str) -> None:
    assert canonical_torch_device(text) == text
    assert Device("/device:X:0", torch_device=text).torch_device == text


def test_a_device_that_torch_does_not_know_has_no_name() -> None:
    assert Device("/device:NPU:0").torch_device is None
