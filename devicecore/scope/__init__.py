"""Device scopes: which device is current."""

from devicecore.scope.current import current_device, device_scope

__all__ = ["current_device", "device_scope"]
