"""Moving data between devices: whole structures, and single arrays between frameworks."""

from devicecore.transfer.conversion import as_tensor, to_numpy
from devicecore.transfer.move import tensors_to_device
from devicecore.transfer.pending_transfer import PendingTransfer
from devicecore.transfer.registrations import register_container, unregister_container

__all__ = [
    "PendingTransfer",
    "as_tensor",
    "register_container",
    "tensors_to_device",
    "to_numpy",
    "unregister_container",
]


def __dir__() -> list[str]:
    return sorted(__all__)
