"""Where factories and kernels come from: our own tables, and the entry points of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device_factory.registration import Registration
from devicecore.entry_points import entry_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from devicecore.entry_points import InstalledEntryPoint

FACTORY_GROUP = "devicecore.factories"
"""Entry points of device factories, whose name is the device type and whose value the class."""

KERNEL_GROUP = "devicecore.kernels"
"""Entry points of kernels, whose name is the operations' prefix and whose value a module."""

_PACKAGE = "devicecore_factories"
_DISTRIBUTION = "devicecore"

# Type, class, priority. Strings, so that the core never imports a factory.
_FACTORIES = (
    ("MPS", "mps:MpsFactory", 202),
    ("CUDA", "cuda:CudaFactory", 200),
    ("TENSORRT", "tensorrt:TensorRTFactory", 198),
    ("COREML", "coreml:CoreMLFactory", 196),
    ("ROCM", "rocm:RocmFactory", 194),
    ("XPU", "xpu:XpuFactory", 192),
    ("OPENVINO", "openvino:OpenVINOPluginFactory", 190),
    ("OPENVINO", "openvino:OpenVINOInTreeFactory", 188),
    ("WEBGPU", "webgpu:WebGPUFactory", 120),
    ("WEBGPU", "webgpu:SoftwareWebGPUFactory", 40),
    ("CPU", "cpu:GPUCompatibleCPUFactory", 70),
    ("CPU", "cpu:ThreadPoolDeviceFactory", 60),
)
_AFTER_CLASS = {"GPUCompatibleCPUFactory": "GPU"}
_ONLY_NAMED = frozenset({"SoftwareWebGPUFactory"})

_KERNEL_MODULES = {
    "cv2": ("devicecore.cv.native", "devicecore.cv.torch_kernels"),
    "onnx": ("devicecore.onnx.operation",),
}


def factories() -> Iterator[Registration]:
    """Yield the registrations of our own factories, then those of installed plug-ins.

    Nothing of a plug-in is imported.
    """
    for device_type, target, priority in _FACTORIES:
        module, _, name = target.partition(":")
        yield Registration(
            device_type,
            f"{_PACKAGE}.{module}:{name}",
            priority,
            _DISTRIBUTION,
            name,
            trusted=True,
            after_class=_AFTER_CLASS.get(name),
            only_named=name in _ONLY_NAMED,
        )
    for entry_point in entry_points(FACTORY_GROUP):
        if (registration := _registration(entry_point)) is not None:
            yield registration


def kernel_modules(prefix: str) -> list[str]:
    """Return the modules that register the kernels of operations called ``prefix.…``."""
    others = [point.value for point in entry_points(KERNEL_GROUP) if point.name == prefix]
    return [*_KERNEL_MODULES.get(prefix, ()), *others]


def _registration(entry_point: InstalledEntryPoint) -> Registration | None:
    from devicecore.errors import RegistrationError

    try:
        return Registration(
            entry_point.name,
            entry_point.value.replace(" ", ""),
            distribution=entry_point.distribution,
            entry_name=entry_point.value,
            version=entry_point.version,
            requires=_required(entry_point.requires),
        )
    except RegistrationError as error:
        import warnings

        warnings.warn(f"left out the entry point {entry_point.name!r}: {error}", stacklevel=2)
        return None


def _required(requirements: Iterable[str]) -> str:
    """Return the versions of devicecore that a plug-in's distribution says it works with.

    Requirements for another system or for an extra do not count, nor do those that mean nothing.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    specifiers = []
    for text in requirements:
        try:
            requirement = Requirement(text)
            marker = requirement.marker
            is_ours = canonicalize_name(requirement.name) == _DISTRIBUTION
            if is_ours and (marker is None or marker.evaluate({"extra": ""})):
                specifiers.append(str(requirement.specifier))
        except (ValueError, LookupError, RecursionError):  # no requirement, or a marker of nothing
            continue
    return ",".join(filter(None, specifiers))
