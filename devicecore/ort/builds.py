"""Builds of ONNX Runtime: which ones pip lists, and what is wrong with the folder they share.

Probes, errors and the doctor all speak from here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.liveness import hardware
from devicecore.optional.faults import numpy_fault, package_fault
from devicecore.optional.search_path import search_path
from devicecore.ort.package import leftover_folder, ort_package, why_missing
from devicecore.ort.providers import PROVIDERS
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


def build_fault() -> BuildFault | None:
    """Return what is wrong with the folder of ONNX Runtime; None if nothing is, or there is none.

    No build is kept for hardware that this machine has not.
    """
    package, recorded = ort_package(), recorded_builds()
    if package is None:
        return _emptied(recorded)
    if len(recorded) > 1:
        return BuildFault(
            "several builds of ONNX Runtime share one folder, and the one installed last wins",
            f"pip lists {', '.join(f'{name} {version}' for name, version in recorded.items())}; "
            f"an import gets {package.label}",
            f"pip uninstall -y {' '.join(recorded)} && pip install {_best(recorded)}",
        )
    if recorded and package.distribution:
        ((only, version),) = recorded.items()
        from packaging.utils import canonicalize_name  # late, as in the whole package

        names_differ = canonicalize_name(package.distribution) != canonicalize_name(only)
        if names_differ or _release(package.version) != _release(version):
            return BuildFault(
                "the files of ONNX Runtime are those of another build than pip lists",
                f"pip lists {only} {version}; an import gets {package.label}",
                _put_back(recorded),
            )
    return None


def _emptied(recorded: Mapping[str, str]) -> BuildFault | None:
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
        _put_back(recorded),
    )


def _put_back(recorded: Collection[str]) -> str:
    """Return the command that brings the files back which one of the *recorded* builds lacks."""
    best = _best(recorded)
    if best in recorded or not recorded:
        return f"pip install --force-reinstall --no-deps {best}"
    return f"pip uninstall -y {' '.join(recorded)} && pip install {best}"


def lack_of(
    known: Provider, package: OrtPackage | None, *, plugin: bool | None = None
) -> tuple[State, str, str]:
    """Return state, reason and fix for a provider that the installed ONNX Runtime has not.

    What is wrong with ONNX Runtime itself comes first: nothing that is installed beside it helps.
    Without the hardware, no package is proposed.

    Args:
        known: The provider.
        package: The installed ONNX Runtime; None without one.
        plugin: Whether the plug-in is meant or a build with it; None for either.
    """
    concerned = not set(known.distributions).isdisjoint(recorded_builds())
    if package is None or plugin is True or concerned:
        if fault := build_fault():
            return "broken", f"{fault.problem} ({fault.evidence})", fault.fix
        if old := numpy_fault(_PLAIN):
            return old.state, old.reason, old.fix
    if absent := without_hardware(known):
        return "absent", absent, ""
    why = why_missing(known, package, plugin=plugin) if package else "onnxruntime is not installed"
    return "missing", why, how_to_install(known, package, plugin=plugin)


def without_hardware(known: Provider) -> str:
    """Return that there is no hardware here for *known*; empty if there may be."""
    absent = hardware.why_absent(known.device_type or "")
    return f"{absent} ({known.note})" if absent and known.replaced_by else absent


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


def _best(recorded: Collection[str]) -> str:
    """Return the build to keep: one for an accelerator if its hardware may be here."""
    useful = [name for name in recorded if name != _PLAIN and _may_serve(name)]
    return next(iter(useful), _PLAIN)


def _may_serve(distribution: str) -> bool:
    """Return whether hardware for a build may be here; it may be anything for one of others."""
    types = {
        known.device_type
        for known in PROVIDERS.values()
        if distribution in known.distributions and known.name != CPU_PROVIDER
    }
    # A build with OpenVINO in it runs on every processor; only the plug-in wants those of Intel.
    return not types or any(
        each in (None, "OPENVINO") or hardware.is_here(each) is not False for each in types
    )


def _release(text: str) -> str:
    """Return *text* without what packagers add to it, such as ``".post1"``."""
    from packaging.version import InvalidVersion, Version  # late, as in the whole package

    try:
        return Version(text).base_version
    except InvalidVersion:
        return text
