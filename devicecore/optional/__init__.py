"""Optional packages: what is installed, and what is wrong with it, learnt without importing it."""

from devicecore.optional.importing import require
from devicecore.optional.packages import installed, package_dir, version_of

__all__ = ["installed", "package_dir", "require", "version_of"]
