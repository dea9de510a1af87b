"""What most tests of devices need; a file that needs another one has its own."""

from __future__ import annotations

import pytest

from devicecore import FactoryRegistry
from devicecore.device import Device
from devicecore.kernels import KernelRegistry
from devicecore.runtime import Runtime
from devicecore.testing import FakeFactory


@pytest.fixture
def registry() -> KernelRegistry:
    """Return kernels that no other test has."""
    return KernelRegistry()


@pytest.fixture
def device(registry: KernelRegistry) -> Device:
    """Return a plain device with those kernels."""
    return Device("/job:localhost/replica:0/task:0/device:NPU:0", registry=registry)


@pytest.fixture
def factory_registry() -> FactoryRegistry:
    """Return factories of fakes: a CPU, two GPUs, and an NPU that only ONNX Runtime can use."""

    class Host(FakeFactory):  # local ones, which no child process can import to probe
        device_type = "CPU"
        device_class = "CPU"
        frameworks = ("torch", "onnx")

    class Cuda(FakeFactory):
        device_type = "CUDA"
        frameworks = ("torch", "onnx")
        torch_name = "cuda"
        priority = 200
        count = 2

    class Acme(FakeFactory):
        device_type = "Acme"
        device_class = "NPU"
        frameworks = ("onnx",)

    made = FactoryRegistry()
    made.register_class("CPU", Host, 60)
    made.register_class("CUDA", Cuda, 200)
    made.register_class("Acme", Acme, 100)
    return made


@pytest.fixture
def runtime(factory_registry: FactoryRegistry) -> Runtime:
    """Return a runtime of those fakes."""
    return Runtime(factory_registry)
