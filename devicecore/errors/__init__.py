"""Every error that devicecore raises.

Each one is also the builtin it is a kind of, keeps its facts as attributes, survives pickling, and
reads in three parts: what was wrong; what is possible; what to do.
"""

from devicecore.errors.base import DeviceCoreError, shorten, without_pip
from devicecore.errors.devices import (
    DeviceError,
    DeviceGoneError,
    NoKernelError,
    NotLiveError,
    OutOfMemoryError,
    RefusedCallError,
)
from devicecore.errors.lookup import (
    ConfigurationError,
    IncompatibleNamesError,
    InvalidDeviceNameError,
    PlanError,
    UnknownDeviceError,
    UnknownResourceError,
)
from devicecore.errors.registration import (
    BrokenPackageError,
    DeviceConflictError,
    HostCpuError,
    MissingDependencyError,
    RegistrationError,
)
from devicecore.errors.runtime import (
    EngineCacheError,
    FallbackForbiddenError,
    ModelError,
    ScopeError,
    TransferError,
)

__all__ = [
    "BrokenPackageError",
    "ConfigurationError",
    "DeviceConflictError",
    "DeviceCoreError",
    "DeviceError",
    "DeviceGoneError",
    "EngineCacheError",
    "FallbackForbiddenError",
    "HostCpuError",
    "IncompatibleNamesError",
    "InvalidDeviceNameError",
    "MissingDependencyError",
    "ModelError",
    "NoKernelError",
    "NotLiveError",
    "OutOfMemoryError",
    "PlanError",
    "RefusedCallError",
    "RegistrationError",
    "ScopeError",
    "TransferError",
    "UnknownDeviceError",
    "UnknownResourceError",
    "shorten",
    "without_pip",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # where users find it, and what a traceback says


def __dir__() -> list[str]:
    return sorted(__all__)
