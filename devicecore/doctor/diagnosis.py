"""What a diagnosis is, and how all of them are made."""

from __future__ import annotations

from importlib import import_module

from attrs import frozen

# One module each, with a function `find() -> Finding | None`.
_DIAGNOSES = ("devicecore.doctor.opencv",)


@frozen
class Finding:
    """Something that is wrong, or that a person will wonder about.

    Attributes:
        name: The diagnosis, such as ``"opencv-system-libraries"``.
        problem: What is wrong, in one line.
        evidence: What was seen.
        fix: What to do, as a command where there is one.
    """

    name: str
    problem: str
    evidence: str
    fix: str


def diagnose() -> list[Finding]:
    """Make all diagnoses; nothing is imported or installed for it."""
    found = (import_module(module).find() for module in _DIAGNOSES)
    return [finding for finding in found if finding is not None]
