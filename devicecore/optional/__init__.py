"""Optional packages: what is installed, and what is wrong with it, learnt without importing it."""

from devicecore.optional.frameworks import class_in, loaded
from devicecore.optional.importing import require
from devicecore.optional.packages import installed, package_dir, version_of

__all__ = ["class_in", "installed", "loaded", "package_dir", "require", "version_of"]
