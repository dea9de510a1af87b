"""Builds of ONNX Runtime: which ones pip lists, and what is wrong with the folder they share.

Probes, errors and the doctor all speak from here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.optional.faults import package_fault
from devicecore.optional.search_path import search_path
from devicecore.ort.package import leftover_folder, ort_package, why_missing
from devicecore.ort.providers import PROVIDERS, provider_named
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from importlib.metadata import PathDistribution

    from devicecore.liveness import State
    from devicecore.ort.package import OrtPackage
    from devicecore.ort.providers import Provider

_PLAIN = "onnxruntime"
_NAMES = ("onnxruntime*.dist-info", "ort_nightly*.dist-info")


@frozen
class BuildFault:
    """What is wrong with the folder that all builds of ONNX Runtime share.

    Attributes:
        problem: What is wrong, in one line.
        evidence: What was seen.
        fix: The command that puts it right.
    """

    problem: str
    evidence: str
    fix: str


def recorded_builds() -> Mapping[str, str]:
    """Return the builds of ONNX Runtime that pip lists, by name, with their versions."""
    from importlib.metadata import PathDistribution  # late: it takes longer than to look

    infos = [info for entry in search_path() for name in _NAMES for info in Path(entry).glob(name)]
    builds: dict[str, str] = {}
    for info in infos:
        distribution = PathDistribution(info)
        if distribution.metadata["Name"] and _has_the_package(distribution):
            builds.setdefault(distribution.metadata["Name"], distribution.version)
    return dict(sorted(builds.items()))


def _has_the_package(distribution: PathDistribution) -> bool:
    top_level = distribution.read_text("top_level.txt")
    if top_level is not None:
        return _PLAIN in top_level.split()
    return any(file.parts[0] == _PLAIN for file in distribution.files or ())


def build_fault(absent: Collection[str] = ()) -> BuildFault | None:
    """Return what is wrong with the folder of ONNX Runtime; None if nothing is, or there is none.

    Args:
        absent: The device types that this machine has no hardware for: no build is kept for them.
    """
    package, recorded = ort_package(), recorded_builds()
    if package is None:
        return _emptied(recorded, absent)
    if len(recorded) > 1:
        return BuildFault(
            "several builds of ONNX Runtime share one folder, and the one installed last wins",
            f"pip lists {', '.join(f'{name} {version}' for name, version in recorded.items())}; "
            f"an import gets {package.label}",
            f"pip uninstall -y {' '.join(recorded)} && pip install {_best(recorded, absent)}",
        )
    if recorded and package.distribution:
        ((only, version),) = recorded.items()
        from packaging.utils import canonicalize_name  # late, as in the whole package

        names_differ = canonicalize_name(package.distribution) != canonicalize_name(only)
        if names_differ or _release(package.version) != _release(version):
            return BuildFault(
                "the files of ONNX Runtime are those of another build than pip lists",
                f"pip lists {only} {version}; an import gets {package.label}",
                f"pip install --force-reinstall --no-deps {only}",
            )
    return None


def _emptied(recorded: Mapping[str, str], absent: Collection[str]) -> BuildFault | None:
    leftover = leftover_folder()
    if leftover is None:
        hidden = package_fault(_PLAIN)
        if not recorded or (hidden and hidden.state == "shadowed"):
            return None
    lacks = f"{leftover} has no __init__.py" if leftover else f"the folder {_PLAIN} is gone"
    imports = "imports as an empty package" if leftover else "cannot be imported"
    return BuildFault(
        f"{_PLAIN} {imports}: one build of it was uninstalled, and took the files of another along",
        f"{lacks}; pip still lists {', '.join(recorded) or 'none'}",
        f"pip install --force-reinstall --no-deps {_best(recorded, absent)}",
    )


def lack_of(
    known: Provider, package: OrtPackage | None, *, plugin: bool | None = None
) -> tuple[State, str, str]:
    """Return state, reason and fix for a provider that the installed ONNX Runtime has not.

    Args:
        known: The provider.
        package: The installed ONNX Runtime; None without one.
        plugin: Whether the plug-in is meant or a build with it; None for either.
    """
    fix = how_to_install(known, package, plugin=plugin)
    if package is None:
        fault = build_fault()
        if fault is None:
            return "missing", "onnxruntime is not installed", fix
        return "broken", f"{fault.problem} ({fault.evidence})", fault.fix
    if plugin is not True and not set(known.distributions).isdisjoint(recorded_builds()):
        fault = build_fault()
        if fault is not None:
            return "broken", f"{fault.problem} ({fault.evidence})", fault.fix
    return "missing", why_missing(known, package, plugin=plugin), fix


def how_to_install(
    known: Provider, package: OrtPackage | None, *, plugin: bool | None = None
) -> str:
    """Return the command that brings *known*; a plug-in goes first, since it replaces nothing.

    Args:
        known: The provider.
        package: The installed ONNX Runtime, which another build would overwrite; None without one.
        plugin: Whether the plug-in is meant or a build with it; None for either.
    """
    if known.plugin and plugin is not False:
        needed = known.plugin.distribution
        return f"pip install {needed}" if package else f"pip install onnxruntime {needed}"
    if not known.distributions:
        return ""
    command = f"pip install {known.distributions[0]}"
    if package is None:
        return command
    others = [*recorded_builds()] or [package.distribution or _PLAIN]
    return f"pip uninstall -y {' '.join(others)} && {command}"


def _best(recorded: Collection[str], absent: Collection[str]) -> str:
    """Return the build to keep: one for an accelerator if its hardware may be here."""
    special = [name for name in recorded if name != _PLAIN]
    useful = [name for name in special if not _types_of(name) or _types_of(name) - {*absent}]
    first = next(iter(special), _PLAIN)
    return next(iter(useful), _PLAIN if _PLAIN in recorded else first)


def _types_of(distribution: str) -> set[str | None]:
    return {
        provider_named(name).device_type
        for name, known in PROVIDERS.items()
        if distribution in known.distributions and name != CPU_PROVIDER
    }


def _release(text: str) -> str:
    """Return *text* without what packagers add to it, such as ``".post1"``."""
    from packaging.version import InvalidVersion, Version  # late, as in the whole package

    try:
        return Version(text).base_version
    except InvalidVersion:
        return text
