"""Plug-in providers: their libraries, registered once, and the devices that they offer.

A library is never unregistered, and no native EpDevice is kept: one used after a change of the
registrations is undefined behaviour in ONNX Runtime.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import NotLiveError
from devicecore.optional import package_dir, require
from devicecore.ort.error_translation import message_of
from devicecore.ort.log_capture import captured_log
from devicecore.ort.providers import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@frozen
class EpDevice:
    """One device as a provider offers it.

    Attributes:
        provider: The provider's name.
        index: Its place among that provider's devices, counted from 0.
        hardware: ``"CPU"``, ``"GPU"`` or ``"NPU"``.
        vendor: Who made the hardware.
        vendor_id: The vendor's PCI number, 0 if unknown.
        device_id: The device's PCI number, 0 if unknown.
        metadata: What the provider says of it, such as its version or ``ov_device``.
        hardware_metadata: What the system says of it, such as its PCI address.
        library: The plug-in's file; None for a provider built into ONNX Runtime.
    """

    provider: str
    index: int
    hardware: str
    vendor: str = ""
    vendor_id: int = 0
    device_id: int = 0
    metadata: Mapping[str, str] = field(factory=dict, hash=False)
    hardware_metadata: Mapping[str, str] = field(factory=dict, hash=False)
    library: str | None = None


def register(library: Path | str) -> tuple[str, ...]:
    """Make the plug-in *library* known to ONNX Runtime, once in this process; return its log.

    Calling again, or after the program itself registered that file, does nothing.

    Raises:
        NotLiveError: The file cannot be loaded, is no plug-in, or ONNX Runtime is too old for one.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    ort = require("onnxruntime", extra="onnx")
    path = Path(library).resolve()
    _import_package(path)
    if not hasattr(ort, "register_execution_provider_library"):
        reason = f"onnxruntime {ort.__version__} knows no plug-ins"
        raise NotLiveError(path.name, "version_mismatch", reason, "pip install 'onnxruntime>=1.23'")
    if any(_is_from(device, path) for device in ort.get_ep_devices()):
        return ()
    with captured_log(native=True) as log:
        try:
            # The path is the name, so the runtime itself refuses a second registration.
            ort.register_execution_provider_library(str(path), str(path))
        except Exception as error:  # its errors share no other base
            if "already registered" not in str(error):
                raise NotLiveError(path.name, "broken", message_of(error)) from error
    if refused := next((line for line in log if "requested API version" in line), ""):
        # The runtime raises nothing here: the library just offers no device.
        raise NotLiveError(
            path.name, "version_mismatch", refused, "pip install --upgrade onnxruntime"
        )
    return tuple(log)


def _import_package(library: Path) -> None:
    """Import the package of a plug-in that puts right there what its library needs."""
    known = (provider.plugin for provider in PROVIDERS.values())
    for plugin in known:
        if plugin and plugin.import_first and package_dir(plugin.module) == library.parent:
            require(plugin.module, extra="onnx")


def ep_devices(provider: str | None = None) -> tuple[EpDevice, ...]:
    """Return the devices of all providers, or of *provider*, that ONNX Runtime knows now.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
    """
    ort = require("onnxruntime", extra="onnx")
    counts: dict[str, int] = {}
    found = []
    for native in getattr(ort, "get_ep_devices", tuple)():
        index = counts.get(native.ep_name, 0)
        counts[native.ep_name] = index + 1
        if provider in (None, native.ep_name):
            found.append(_value_of(native, index))
    return tuple(found)


def native_device(provider: str, index: int) -> Any:
    """Return ONNX Runtime's own object for a device, to be used at once and not kept.

    Raises:
        NotLiveError: *provider* offers no such device.
    """
    ort = require("onnxruntime", extra="onnx")
    offered: Sequence[Any] = getattr(ort, "get_ep_devices", tuple)()
    devices = [device for device in offered if device.ep_name == provider]
    if index < len(devices):
        return devices[index]
    hardware = {f"{device.device.type.name} of {device.device.vendor}": None for device in offered}
    found = f"{len(devices)} devices" if devices else "no device"
    reason = f"registered, but it offers {found} for the hardware here: {', '.join(hardware)}"
    raise NotLiveError(provider, "absent", reason)


def _value_of(native: Any, index: int) -> EpDevice:
    metadata = dict(native.ep_metadata)
    return EpDevice(
        native.ep_name,
        index,
        native.device.type.name,
        native.device.vendor,
        native.device.vendor_id,
        native.device.device_id,
        metadata,
        dict(native.device.metadata),
        metadata.get("library_path"),
    )


def _is_from(native: Any, path: Path) -> bool:
    library = native.ep_metadata.get("library_path")
    return library is not None and Path(library).resolve() == path
