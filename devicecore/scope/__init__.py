"""Device scopes: which device is current, for devicecore and for the frameworks."""

from devicecore.scope.default import set_default_device
from devicecore.scope.propagation import CapturedScopes, capture, propagate
from devicecore.scope.scope import PlaceEnv, device_scope
from devicecore.scope.scope_stack import current_device, get_default_device

__all__ = [
    "CapturedScopes",
    "PlaceEnv",
    "capture",
    "current_device",
    "device_scope",
    "get_default_device",
    "propagate",
    "set_default_device",
]


def __dir__() -> list[str]:
    return sorted(__all__)
