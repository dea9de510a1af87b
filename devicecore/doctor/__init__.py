"""Diagnoses of a machine, one file each, named in a table."""

from devicecore.doctor.bundle import machine, write_bundle
from devicecore.doctor.case import Case, Session, Trial
from devicecore.doctor.diagnosis import Finding, diagnose
from devicecore.doctor.trial import sessions_to_try, tried

__all__ = [
    "Case",
    "Finding",
    "Session",
    "Trial",
    "diagnose",
    "machine",
    "sessions_to_try",
    "tried",
    "write_bundle",
]


def __dir__() -> list[str]:
    return sorted(__all__)
