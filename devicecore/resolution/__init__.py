"""Which device a program gets: the full answer, and the short ones that programs ask for."""

from devicecore.resolution.resolution import Rejected, Resolution, resolve
from devicecore.resolution.seed_functions import (
    get_providers,
    is_gpu_available,
    resolve_device,
    torch_available,
)

__all__ = [
    "Rejected",
    "Resolution",
    "get_providers",
    "is_gpu_available",
    "resolve",
    "resolve_device",
    "torch_available",
]


def __dir__() -> list[str]:
    return sorted(__all__)
