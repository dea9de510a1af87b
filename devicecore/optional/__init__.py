"""Optional packages: what is installed, and what is wrong with it, learnt without importing it."""

from devicecore.optional.importing import import_own, require
from devicecore.optional.packages import installed, package_dir, version_of

__all__ = ["import_own", "installed", "package_dir", "require", "version_of"]


def __dir__() -> list[str]:
    return sorted(__all__)
