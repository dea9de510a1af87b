"""Unpacks SwiftShader, a Vulkan driver in software, so that WebGPU is tested without a GPU.

Debian's packages ``libvulkan1`` and ``chromium-common`` carry the loader and the driver; they are
not installed. What the tests need goes into ``share/swiftshader`` of the environment whose Python
runs this. Where there is no apt, one line says what will be skipped.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGES = ("libvulkan1", "chromium-common")
WANTED = ("libvulkan.so.1", "libvk_swiftshader.so", "vk_swiftshader_icd.json")
FOLDER = Path(sys.prefix, "share", "swiftshader")


def run(*command: str, folder: str) -> bool:
    """Run *command* in *folder*, and return whether it succeeded."""
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return done.returncode == 0


def unpacked(folder: str) -> bool:
    """Download the packages into *folder* and unpack them there; return whether that worked."""
    download = ("apt-get", "-qq", "download", *PACKAGES)
    if not run(*download, folder=folder):
        run("apt-get", "-qq", "update", folder=folder)
        if not run(*download, folder=folder):
            return False
    packages = sorted(Path(folder).glob("*.deb"))
    return all(run("dpkg", "-x", str(package), folder, folder=folder) for package in packages)


def main() -> None:
    """Put the files in place, unless they are there."""
    if all((FOLDER / name).is_file() for name in WANTED):
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        print("no apt here: the tests of WebGPU on SwiftShader will be skipped")
        return
    with TemporaryDirectory() as folder:
        if not unpacked(folder):
            print("apt has no SwiftShader: the tests of WebGPU on it will be skipped")
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in WANTED:
            # The loader of Debian goes before the one that the browser brings.
            found = [file for file in sorted(Path(folder).rglob(name)) if file.is_file()]
            shutil.copy(
                next((file for file in found if "-linux-gnu" in str(file)), found[0]), FOLDER
            )


if __name__ == "__main__":
    main()
