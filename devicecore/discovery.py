"""Where factories and kernels come from: our own tables, and the entry points of others."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.device_factory.registration import Registration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint

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

_METADATA = (".dist-info", ".egg-info")

_KERNEL_MODULES = {"cv2": ("devicecore.cv.native", "devicecore.cv.torch_kernels")}


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
    for entry_point in _entry_points(FACTORY_GROUP):
        if (registration := _registration(entry_point)) is not None:
            yield registration


def kernel_modules(prefix: str) -> list[str]:
    """Return the modules that register the kernels of operations called ``prefix.…``."""
    others = [point.value for point in _entry_points(KERNEL_GROUP) if point.name == prefix]
    return [*_KERNEL_MODULES.get(prefix, ()), *others]


def _registration(entry_point: EntryPoint) -> Registration | None:
    from devicecore.errors import RegistrationError

    distribution = entry_point.dist
    try:
        return Registration(
            entry_point.name,
            entry_point.value.replace(" ", ""),
            distribution=distribution.name if distribution else "",
            entry_name=entry_point.value,
            version=distribution.version if distribution else "",
            requires=_required(distribution.requires or ()) if distribution else "",
        )
    except RegistrationError as error:
        import warnings

        warnings.warn(f"left out the entry point {entry_point.name!r}: {error}", stacklevel=2)
        return None


def _required(requirements: Iterable[str]) -> str:
    """Return the versions of devicecore that a plug-in's distribution says it works with."""
    from packaging.requirements import InvalidRequirement, Requirement

    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.name.lower() == _DISTRIBUTION:
            return str(requirement.specifier)
    return ""


def _entry_points(group: str) -> list[EntryPoint]:
    if not any(_may_name(group, entry or ".") for entry in sys.path):
        return []
    from importlib.metadata import entry_points  # late: it costs a sixth of a cold start

    found = entry_points(group=group)
    return sorted(found, key=lambda point: (point.dist.name if point.dist else "", point.name))


def _may_name(group: str, entry: str) -> bool:
    """Return whether a distribution in a folder of ``sys.path`` may have entry points of *group*.

    Most programs have no plug-in, and this finds that out without reading all metadata. What is
    no folder, such as a zip file, is left to ``importlib.metadata``.
    """
    try:
        folders = [item.path for item in os.scandir(entry) if item.name.endswith(_METADATA)]
    except FileNotFoundError:
        return False
    except OSError:
        return True
    for folder in folders:
        with suppress(OSError), Path(folder, "entry_points.txt").open(encoding="utf-8") as file:
            if group in file.read():
                return True
    return False
