"""Kernels: functions that compute one operation on a kind of device, and how one is chosen."""

from devicecore.kernels.choice import fitting_kernels, get_kernel, refusals
from devicecore.kernels.exactness import Exactness
from devicecore.kernels.kernel import Kernel, KernelHost
from devicecore.kernels.registry import KernelRegistry, default_kernels, kernel

__all__ = [
    "Exactness",
    "Kernel",
    "KernelHost",
    "KernelRegistry",
    "default_kernels",
    "fitting_kernels",
    "get_kernel",
    "kernel",
    "refusals",
]


def __dir__() -> list[str]:
    return sorted(__all__)
