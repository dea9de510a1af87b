"""What most tests of devices need; a file that needs another one has its own."""

from __future__ import annotations

import pytest

from devicecore.device import Device
from devicecore.kernels import KernelRegistry


@pytest.fixture
def registry() -> KernelRegistry:
    """Return kernels that no other test has."""
    return KernelRegistry()


@pytest.fixture
def device(registry: KernelRegistry) -> Device:
    """Return a plain device with those kernels."""
    return Device("/job:localhost/replica:0/task:0/device:NPU:0", registry=registry)
