"""The installed ONNX Runtime, known from its files: nothing of it is imported."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from attrs import frozen

from devicecore.optional import installed, package_dir
from devicecore.optional.search_path import search_path
from devicecore.ort.providers import PROVIDERS, Plugin, Provider, provider_named
from devicecore.ort.spec import CPU_PROVIDER

_ASSIGNMENT = re.compile(r"""^(\w+)\s*=\s*["']([^"']*)["']""", re.MULTILINE)

# Builds whose providers are known; of one that somebody made, only its files tell.
_BUILDS = frozenset(name for known in PROVIDERS.values() for name in known.distributions)


@frozen
class OrtPackage:
    """The ONNX Runtime that an import would find.

    Attributes:
        folder: Its package folder.
        distribution: The build's name, such as ``"onnxruntime-gpu"``; empty if it does not say.
        version: Its version, such as ``"1.32.0"``; empty if it does not say.
        cuda_version: The CUDA that it was built for, such as ``"13.0"``; empty without CUDA.
    """

    folder: Path
    distribution: str = ""
    version: str = ""
    cuda_version: str = ""

    @property
    def name(self) -> str:
        """The build and its version, such as ``"onnxruntime-gpu 1.31.1"``."""
        return f"{self.distribution or 'onnxruntime'} {self.version}".rstrip()

    @property
    def label(self) -> str:
        """One phrase for a person, such as ``"onnxruntime-gpu 1.31.1, built for CUDA 13.0"``."""
        return (
            f"{self.name}, built for CUDA {self.cuda_version}" if self.cuda_version else self.name
        )


def ort_package() -> OrtPackage | None:
    """Return the installed ONNX Runtime, or None where there is none.

    What an uninstalled one leaves behind, a folder without ``__init__.py``, is none.
    """
    folder = package_dir("onnxruntime")
    if folder is None:
        return None
    try:
        text = (folder / "capi" / "build_and_package_info.py").read_text(encoding="utf-8")
    except OSError:
        return OrtPackage(folder)
    facts = dict(_ASSIGNMENT.findall(text))
    return OrtPackage(
        folder,
        facts.get("package_name", ""),
        facts.get("__version__", ""),
        facts.get("cuda_version", ""),
    )


def leftover_folder() -> Path | None:
    """Return the folder that an uninstalled ONNX Runtime left behind, if that is all there is.

    It imports as an empty package, so whoever uses it gets an AttributeError and no reason.
    """
    if installed("onnxruntime"):
        return None
    folders = (Path(entry) / "onnxruntime" for entry in search_path() if entry)
    emptied = (folder for folder in folders if folder.is_dir())
    return next((folder for folder in emptied if not (folder / "__init__.py").is_file()), None)


def provider_library(provider: str) -> Path | None:
    """Return the library of *provider* inside the installed ONNX Runtime, if it has one there.

    One that another build left behind in the same folder is none: what is imported cannot use it.
    """
    package, known = ort_package(), provider_named(provider)
    if package is None or not known.library:
        return None
    if package.distribution in _BUILDS and package.distribution not in known.distributions:
        return None
    return _library_in(package.folder / "capi", known.library)


def plugin_library(plugin: Plugin) -> Path | None:
    """Return the library of *plugin* where its distribution is installed, else None."""
    folder = package_dir(plugin.module)
    return _library_in(folder, plugin.library) if folder else None


def provided_by_import(library: Path) -> set[str]:
    """Return the names of libraries that a plug-in's package has ready once it is imported.

    Those lie beside *library* under their full versions, and are not found under their short ones
    before.
    """
    plugins = (provider.plugin for provider in PROVIDERS.values())
    folders = [package_dir(each.module) for each in plugins if each and each.import_first]
    if library.parent not in folders:
        return set()
    names = [file.name.split(".") for file in library.parent.glob("lib*.so*")]
    return {".".join(parts[:end]) for parts in names for end in range(2, len(parts) + 1)}


def is_built_in(known: Provider, package: OrtPackage) -> bool:
    """Return whether *package* is a build that contains *known*."""
    if known.name == CPU_PROVIDER or known.platform == sys.platform == "darwin":
        return True
    return package.distribution in known.distributions


def why_missing(known: Provider, package: OrtPackage, *, plugin: bool | None = None) -> str:
    """Return the sentence for a provider that *package* was built without.

    Args:
        known: The provider.
        package: The installed ONNX Runtime.
        plugin: Whether the plug-in is meant, whatever was built in.
    """
    if known.plugin and plugin:
        return f"{known.plugin.distribution} is not installed"
    reason = f"{package.name} was built without {known.name}"
    return f"{reason} ({known.note})" if known.note else reason


def _library_in(folder: Path, stem: str) -> Path | None:
    names = (f"lib{stem}.so", f"lib{stem}.dylib", f"{stem}.dll")
    return next((folder / name for name in names if (folder / name).is_file()), None)
