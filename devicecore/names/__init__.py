"""Device names: values that say which device is meant, as TensorFlow writes them."""

from devicecore.names.device_name import DeviceName
from devicecore.names.spelling import spelled
from devicecore.names.torch_device import canonical_torch_device
from devicecore.names.types import (
    DEVICE_CLASSES,
    DEVICE_TYPES,
    PROVIDER_TYPES,
    canonical_type,
)

__all__ = [
    "DEVICE_CLASSES",
    "DEVICE_TYPES",
    "PROVIDER_TYPES",
    "DeviceName",
    "canonical_torch_device",
    "canonical_type",
    "spelled",
]
