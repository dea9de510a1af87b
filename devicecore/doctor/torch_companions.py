"""torchvision and torchaudio that were built for another torch: their operators do not load."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.optional import version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case

_COMPANIONS = ("torchvision", "torchaudio")


def find(case: Case) -> Iterator[Finding]:
    """Yield the packages beside torch whose binaries were made for another one."""
    del case
    torch = version_of("torch")
    for name in _COMPANIONS:
        version = version_of(name)
        if torch and version and (why := _mismatch(name, version, torch)):
            yield Finding(
                f"{name}-for-another-torch",
                f"{name} was built for another torch, so its operators do not load",
                why,
                f"pip uninstall -y torch {name} && pip install torch {name}",
            )


def _mismatch(name: str, version: str, torch: str) -> str:
    """Return why *name* does not fit *torch*; empty if it does."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion, Version

    try:
        wanted = [Requirement(text) for text in requires(name) or ()]
        installed, local = Version(torch), Version(torch).local
        theirs = Version(version).local
    except (PackageNotFoundError, InvalidRequirement, InvalidVersion):
        return ""
    for requirement in wanted:
        if requirement.name == "torch" and not requirement.specifier.contains(
            installed, prereleases=True
        ):
            return f"{name} {version} wants torch{requirement.specifier}, and torch is {torch}"
    # What says nothing of CUDA may be for any; torchaudio's own operators are for any as well.
    if name == "torchvision" and local and theirs and local != theirs:
        return f"{name} is {version}, and torch is {torch}"
    return ""
