"""ONNX Runtime for devices: its providers, whether they work, and sessions that stay on them.

Nothing here imports ONNX Runtime before a function needs it.
"""

from devicecore.ort.engines import CACHE_POLICIES, CachePolicy
from devicecore.ort.libraries import missing_libraries
from devicecore.ort.memory import empty_value
from devicecore.ort.package import OrtPackage, ort_package, plugin_library, provider_library
from devicecore.ort.plugins import EpDevice, ep_devices, register
from devicecore.ort.probe import library_metadata, probe_provider, provider_metadata
from devicecore.ort.provider_options import PRECISIONS, Precision
from devicecore.ort.providers import PROVIDERS, Plugin, Provider, provider_named
from devicecore.ort.session import OpenedSession
from devicecore.ort.session_opening import open_session
from devicecore.ort.spec import CPU_PROVIDER, SessionSpec

__all__ = [
    "CACHE_POLICIES",
    "CPU_PROVIDER",
    "PRECISIONS",
    "PROVIDERS",
    "CachePolicy",
    "EpDevice",
    "OpenedSession",
    "OrtPackage",
    "Plugin",
    "Precision",
    "Provider",
    "SessionSpec",
    "empty_value",
    "ep_devices",
    "library_metadata",
    "missing_libraries",
    "open_session",
    "ort_package",
    "plugin_library",
    "probe_provider",
    "provider_library",
    "provider_metadata",
    "provider_named",
    "register",
]


def __dir__() -> list[str]:
    return sorted(__all__)
