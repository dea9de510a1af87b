"""What is wrong with an installed package, from its files alone: nothing of it is imported."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from devicecore.optional.packages import FRAMEWORKS, package_dir, version_of
from devicecore.optional.search_path import search_path

if TYPE_CHECKING:
    from collections.abc import Iterable

# Files that only the package itself has, whoever else takes its name.
_MARKS = {
    "cv2": ("cv2*", "config.py"),
    "jax": ("_src",),
    "numpy": ("version.py", "_core", "core"),
    "onnxruntime": ("capi",),
    "paddle": ("framework", "base"),
    "tensorflow": ("python",),
    "torch": ("version.py",),
    "torchvision": ("version.py",),
}
# The binaries that speak to NumPy in C.
_BINARIES = {
    "cv2": ("cv2*.so", "cv2*.pyd"),
    "onnxruntime": ("capi/onnxruntime_pybind11_state*",),
    "torch": ("lib/libtorch_python.so", "lib/libtorch_python.dylib", "lib/torch_python.dll"),
}
_ORT_BUILDS = ("gpu", "openvino", "migraphx", "rocm", "directml", "qnn", "training")
# What pip calls a package where it records nothing of it any more.
_DISTRIBUTIONS = {"cv2": "opencv-python-headless", "paddle": "paddlepaddle"}
# Under which names pip may list a package; of ONNX Runtime, no plug-in is one of them.
_RECORDS = {
    "cv2": ("opencv_*python*",),
    "onnxruntime": ("onnxruntime", *(f"onnxruntime_{name}" for name in _ORT_BUILDS)),
    "paddle": ("paddlepaddle*",),
}
# Headers of NumPy 2 look for the second place as well, so binaries made with them run with both.
_NUMPY_1, _NUMPY_2 = b"numpy.core._multiarray_umath", b"numpy._core._multiarray_umath"


@frozen
class PackageFault:
    """What is wrong with a package.

    Attributes:
        state: ``shadowed``: a file of the program has its name; ``broken``: it cannot work.
        reason: What is wrong, in one line.
        fix: What to do.
    """

    state: Literal["shadowed", "broken"]
    reason: str
    fix: str


def package_fault(module: str) -> PackageFault | None:
    """Return what has the name of the top-level package *module*, or has emptied it; else None."""
    if module not in FRAMEWORKS:
        return None
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None if module in sys.modules else _gone(module)  # a program may forbid an import
    if spec.origin is None:
        return _emptied(module, spec.submodule_search_locations or ())
    own = Path(spec.origin)
    # A file of an archive, as in a frozen program, tells nothing of what lies beside it.
    if is_itself(module, own) or not own.is_file():
        return None
    is_package = spec.submodule_search_locations is not None
    return shadow(module, own.parent if is_package else own, hides=_is_behind(module, own))


def shadow(module: str, path: Path, *, hides: bool) -> PackageFault:
    """Return the fault of *path*, a file or folder with the name of the package *module*.

    Args:
        module: The package.
        path: What an import finds in its place.
        hides: Whether the package is installed.
    """
    new = f"rename {path}, to {path.with_name(f'my_{path.name}').name} for example"
    if hides:
        reason = f"{path} goes before the installed package {module}, whose name it has"
        return PackageFault("shadowed", reason, new)
    reason = f"{path} has the name of the package {module}, which is not installed"
    return PackageFault("shadowed", reason, f"{new}, before {module} is installed")


def numpy_fault(module: str) -> PackageFault | None:
    """Return that *module* was built for NumPy 1 and NumPy 2 is installed; None if it is not so.

    Reads its binary, which takes some hundredths of a second.
    """
    numpy, folder = version_of("numpy"), package_dir(module)
    if numpy is None or folder is None or not numpy.partition(".")[0].isdigit():
        return None
    files = [file for pattern in _BINARIES.get(module, ()) for file in folder.glob(pattern)]
    if int(numpy.partition(".")[0]) < 2 or not any(map(_is_for_numpy_1, files)):  # noqa: PLR2004 - NumPy 2
        return None
    return PackageFault(
        "broken",
        f"{module} was built for NumPy 1, and NumPy {numpy} is installed",
        f"pip install --upgrade {_distribution(module)}, or pip install 'numpy<2'",
    )


def _is_for_numpy_1(file: Path) -> bool:
    import mmap  # late: only this needs it

    try:
        with (
            file.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return data.find(_NUMPY_2) < 0 <= data.find(_NUMPY_1)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return False


def _emptied(module: str, folders: Iterable[str]) -> PackageFault | None:
    """Return the fault of a package without ``__init__.py``, if pip once installed it there."""
    for folder in map(Path, folders):
        if any(folder.parent.glob("*.dist-info")):
            return PackageFault(
                "broken",
                f"{module} imports as an empty package: {folder} has no __init__.py any more",
                f"pip install --force-reinstall --no-deps {_distribution(module)}",
            )
    return None


def _gone(module: str) -> PackageFault | None:
    """Return the fault of a package of which pip has a record, and nothing else is there."""
    names = _RECORDS.get(module, (module,))
    for folder in map(Path, filter(None, search_path())):
        for info in (info for name in names for info in folder.glob(f"{name}-*.dist-info")):
            distribution = info.name.partition("-")[0].replace("_", "-")
            return PackageFault(
                "broken",
                f"{module} is gone: pip lists {distribution}, and {folder} has no {module}",
                f"pip install --force-reinstall --no-deps {distribution}",
            )
    return None


def is_itself(module: str, origin: Path) -> bool:
    """Return whether *origin*, which an import of *module* finds, is of the package itself."""
    if origin.stem != "__init__":
        return origin.suffix != ".py"  # OpenCV may be a single binary
    marks = _MARKS.get(module, ())
    return not marks or any(any(origin.parent.glob(mark)) for mark in marks)


def _is_behind(module: str, shadow_of_it: Path) -> bool:
    """Return whether the package itself lies further down the path."""
    for entry in sys.path:
        spec = PathFinder.find_spec(module, [entry])
        if spec is None or spec.origin is None or Path(spec.origin) == shadow_of_it:
            continue
        if is_itself(module, Path(spec.origin)):
            return True
    return False


def _distribution(module: str) -> str:
    """Return what pip calls the package that *module* is from."""
    from importlib.metadata import packages_distributions

    names = sorted(set(packages_distributions().get(module, ())))
    return names[0] if names else _DISTRIBUTIONS.get(module, module)
