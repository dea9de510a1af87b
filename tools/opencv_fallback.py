"""Puts the headless OpenCV wheel in place where the full one cannot be loaded.

The wheel of ``opencv-python`` needs libGL, libgthread and libxcb from the system, which a bare
server image lacks. ``opencv-python-headless`` is the same version of the same library without the
windows, and is all that devicecore needs. Both own the folder ``cv2``, so the full one goes first.

Run it with the Python of the environment to be looked after.
"""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

FULL, HEADLESS = "opencv-python", "opencv-python-headless"


def why_not_loadable() -> str | None:
    """Return the loader's complaint about a system library, or None.

    ``cv2`` is imported in a child process, so that this process can replace its files.

    Raises:
        RuntimeError: ``cv2`` fails for another reason, which another wheel would not cure.
    """
    child = subprocess.run(
        [sys.executable, "-c", "import cv2"], capture_output=True, text=True, check=False
    )
    if child.returncode == 0:
        return None
    complaint = (child.stderr.strip() or f"exit status {child.returncode}").splitlines()[-1]
    if "cannot open shared object file" not in complaint:
        message = f"cv2 does not import, and not for want of a system library: {complaint}"
        raise RuntimeError(message)
    return complaint.removeprefix("ImportError: ").partition(":")[0]


def pip(*arguments: str) -> None:
    """Run pip of this environment, quietly."""
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
        check=True,
    )


def main() -> None:
    """Swap the wheels where that is needed, and say so in one line."""
    try:
        wanted = version(FULL)
    except PackageNotFoundError:
        return
    missing = why_not_loadable()
    if missing is None:
        return
    pip("uninstall", "--yes", FULL)
    # Where both were installed, taking one away took shared files of the other with it.
    pip("install", "--no-deps", "--force-reinstall", f"{HEADLESS}=={wanted}")
    print(f"{FULL} {wanted} needs {missing}, which is not here: took {HEADLESS} {wanted} instead")
    if (still := why_not_loadable()) is not None:
        sys.exit(f"cv2 still does not load: {still} is missing")


if __name__ == "__main__":
    main()
