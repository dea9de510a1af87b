"""Diagnoses of a machine, one file each, named in a table."""

from devicecore.doctor.diagnosis import Finding, diagnose

__all__ = ["Finding", "diagnose"]
