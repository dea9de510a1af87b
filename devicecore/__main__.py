"""``python -m devicecore``."""

import sys

from devicecore.cli import main

if __name__ == "__main__":
    sys.exit(main())
