"""Import an optional package, or say what keeps it from being imported."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from devicecore.errors import BrokenPackageError, MissingDependencyError
from devicecore.optional.packages import FRAMEWORKS

if TYPE_CHECKING:
    from types import ModuleType

# Packages that were looked at after their import: an emptied or hidden one imports all the same.
_fine: set[str] = set()


def require(module: str, *, extra: str) -> ModuleType:
    """Import *module*, or say which extra brings it.

    Raises:
        MissingDependencyError: *module* itself is missing. An ImportError from inside an installed
            *module* goes through unchanged, since installing it again would not help.
        BrokenPackageError: It is known what keeps an installed *module* from working: it was
            emptied, a file of the program has its name, or it was built for another NumPy.
    """
    try:
        imported = import_module(module)
    except (ImportError, AttributeError) as error:
        if fault := _fault(module, failed=True):
            raise fault from error
        if not isinstance(error, ModuleNotFoundError) or error.name != module.partition(".")[0]:
            raise
        raise MissingDependencyError(module, extra) from error
    if module in FRAMEWORKS and module not in _fine:
        if fault := _fault(module):
            raise fault
        _fine.add(module)
    return imported


def import_own(module: str) -> ModuleType:
    """Import a module of ours, or say which package that it imports cannot be.

    Raises:
        BrokenPackageError: It is known what keeps such a package from working.
    """
    try:
        return import_module(module)
    except (BrokenPackageError, MissingDependencyError):
        raise
    except (ImportError, AttributeError) as error:
        for package in sorted(FRAMEWORKS & sys.modules.keys()):
            if fault := _fault(package):
                raise fault from error
        raise


def _fault(module: str, *, failed: bool = False) -> BrokenPackageError | None:
    from devicecore.optional.faults import numpy_fault, package_fault  # late: few need it

    fault = package_fault(module) or package_fault("numpy")
    if fault is None and failed:
        fault = numpy_fault(module)
    return BrokenPackageError(module, fault.state, fault.reason, fault.fix) if fault else None
