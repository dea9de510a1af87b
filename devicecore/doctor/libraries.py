"""The libraries of providers, what they lack, and where a copy of that lies all the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from devicecore import config
from devicecore.optional import package_dir
from devicecore.ort import PROVIDERS, missing_libraries, ort_package
from devicecore.ort.elf import needs_of
from devicecore.ort.libraries import cannot_load, opened_later, wheel_libraries
from devicecore.ort.package import (
    is_built_in,
    plugin_library,
    provided_by_import,
    provider_library,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.doctor.case import Case
    from devicecore.ort import Provider

# Where installers put libraries that the loader need not know of.
_FOLDERS = (
    "usr/local/cuda*/lib64",
    "usr/local/cuda*/targets/*/lib",
    "usr/local/[Tt]ensor[Rr][Tt]*/lib",
    "opt/[Tt]ensor[Rr][Tt]*/lib",
    "opt/rocm*/lib",
    "usr/lib/*-linux-gnu",
    "usr/lib64",
)
_TENSORRT = ("libnvinfer", "libnvonnxparser")


@frozen
class Lack:
    """What the library of one provider lacks.

    Attributes:
        provider: Whose library it is.
        library: Its file.
        is_plugin: Whether it is a plug-in rather than part of ONNX Runtime.
        nowhere: The libraries that are not on this machine.
        elsewhere: Those that are, by name, where the loader does not look.
        later: What the library opens by itself only when it runs, and the loader does not find, by
            name; None for one that is not on this machine.
    """

    provider: Provider
    library: Path
    is_plugin: bool
    nowhere: tuple[str, ...] = ()
    elsewhere: Mapping[str, Path] = field(factory=dict, hash=False)
    later: Mapping[str, Path | None] = field(factory=dict, hash=False)


def lacks(case: Case) -> Iterator[Lack]:
    """Yield what each provider's library lacks, for the providers that are installed here.

    What has no hardware here is left out: with all of its libraries it would compute nothing.
    """
    absent = case.absent_types
    for provider, library, is_plugin in _installed():
        if provider.device_type in absent:
            continue
        missing = missing_libraries(library, provided_by_import(library))
        wheels = wheel_libraries()
        elsewhere = {
            name: wheels[name]
            for name in needs_of(library).libraries
            if name in wheels and cannot_load(name)
        }
        for name in missing:
            if found := _exactly(name):
                elsewhere[name] = found
        nowhere = tuple(name for name in missing if name not in elsewhere)
        later = {name: _exactly(name) for name in opened_later(library) if cannot_load(name)}
        yield Lack(provider, library, is_plugin, nowhere, elsewhere, later)


def _exactly(name: str) -> Path | None:
    return next((copy for copy in copies(name) if copy.name == name), None)


def _installed() -> Iterator[tuple[Provider, Path, bool]]:
    package = ort_package()
    if package is None:
        return
    for provider in PROVIDERS.values():
        if is_built_in(provider, package) and (library := provider_library(provider.name)):
            yield provider, library, False
        if provider.plugin and (library := plugin_library(provider.plugin)):
            yield provider, library, True


def copies(name: str, root: Path = Path("/")) -> list[Path]:
    """Return the copies of the library *name* in any version, wherever installers put them."""
    pattern = f"{name.partition('.so')[0]}.so*"
    folders = [Path(folder) for folder in config.load().library_path]
    folders += [folder for each in _FOLDERS for folder in sorted(root.glob(each))]
    if tensorrt := package_dir("tensorrt_libs"):
        folders.append(tensorrt)
    found = {file: None for folder in folders for file in sorted(folder.glob(pattern))}
    found |= {file: None for file in wheel_libraries().values() if file.match(pattern)}
    return list(found)


def is_tensorrt(name: str) -> bool:
    """Return whether the library *name* is one of TensorRT's own."""
    return name.startswith(_TENSORRT)
