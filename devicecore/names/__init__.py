"""Device names: values that say which device is meant, as TensorFlow writes them."""

from devicecore.names.device_name import DeviceName
from devicecore.names.spelling import meant_by, spelled, type_named
from devicecore.names.torch_device import canonical_torch_device
from devicecore.names.types import (
    DEVICE_CLASSES,
    DEVICE_TYPES,
    PROVIDER_TYPES,
    canonical_type,
)
from devicecore.names.words import (
    FRAMEWORKS,
    canonical_framework,
    checked_framework,
    meant_framework,
    near_types,
    types_meant_by_vendor,
    types_of_class,
    why_unknown,
)

__all__ = [
    "DEVICE_CLASSES",
    "DEVICE_TYPES",
    "FRAMEWORKS",
    "PROVIDER_TYPES",
    "DeviceName",
    "canonical_framework",
    "canonical_torch_device",
    "canonical_type",
    "checked_framework",
    "meant_by",
    "meant_framework",
    "near_types",
    "spelled",
    "type_named",
    "types_meant_by_vendor",
    "types_of_class",
    "why_unknown",
]


def __dir__() -> list[str]:
    return sorted(__all__)
