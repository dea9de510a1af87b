"""Which libraries a library misses, all of them at once, and what brings them.

The loader names only the first one it cannot find; whoever installs that meets the next.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections import deque
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.ort.elf import needs_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOT_FOUND = re.compile(r"(?P<library>[^:\s]+): cannot open shared object file")

# What brings a library, by its name up to ".so"; "{major}" is the CUDA that it belongs to.
_BRINGS = {
    "libcuda": "the NVIDIA driver",
    "libnvidia-ml": "the NVIDIA driver",
    "libcublas": "nvidia-cublas",
    "libcublasLt": "nvidia-cublas",
    "libcudart": "nvidia-cuda-runtime",
    "libcufft": "nvidia-cufft",
    "libcurand": "nvidia-curand",
    "libnvrtc": "nvidia-cuda-nvrtc",
    "libcudnn": "nvidia-cudnn-cu{major}",
    "libnvinfer": "TensorRT",
    "libnvinfer_plugin": "TensorRT",
    "libnvonnxparser": "TensorRT",
    "libamdhip64": "the ROCm runtime",
    "libmigraphx_c": "MIGraphX of ROCm",
    "libOpenCL": "the OpenCL loader of the graphics driver",
    "libvulkan": "the Vulkan loader of the graphics driver",
}
_SUFFIXED_BEFORE = 13  # NVIDIA's packages carry -cu11 and -cu12 in their names, not -cu13


def missing_libraries(path: Path, provided: Iterable[str] = ()) -> tuple[str, ...]:
    """Return every library that *path* needs, directly or not, and that cannot be loaded.

    Each one is tried with the loader and let go of again. Empty where nothing is missing, and for a
    file that is not a library of Linux, of which nothing can be said.

    Args:
        path: The library.
        provided: The names of libraries that will be there once *path* is loaded.
    """
    missing: dict[str, None] = {}
    seen = set(provided)
    # As the loader does: all that one library names comes before what those name.
    waiting: deque[tuple[Path, tuple[Path, ...]]] = deque([(path, ())])
    while waiting:
        library, inherited = waiting.popleft()
        try:
            needs = needs_of(library)
        except OSError:
            missing[library.name] = None
            continue
        inherited = (*_placed(needs.inherited_folders, library), *inherited)
        folders = _placed(needs.folders, library) or inherited
        for name in needs.libraries:
            if name in seen:
                continue
            seen.add(name)
            beside = next((folder / name for folder in folders if (folder / name).is_file()), None)
            problem = "" if beside else cannot_load(name)
            if problem == name:
                beside = wheel_libraries().get(name)
            if beside is not None:
                waiting.append((beside, inherited))
            elif problem:
                missing[problem] = None
    return tuple(missing)


def _placed(folders: Iterable[str], library: Path) -> tuple[Path, ...]:
    """Return *folders* as *library* means them, which writes its own as ``$ORIGIN``."""
    origin = str(library.resolve().parent)
    return tuple(
        Path(folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)) for folder in folders
    )


def cannot_load(name: str) -> str:
    """Load *name*, let go of it and return the library that is missing; empty if it loads."""
    import _ctypes

    try:
        handle = ctypes.CDLL(name)
    except OSError as error:
        named = libraries_named_in(str(error))
        return named[0] if named else name
    _ctypes.dlclose(handle._handle)  # noqa: SLF001 - ctypes has no public way to let go
    return ""


def libraries_named_in(text: str) -> tuple[str, ...]:
    """Return the libraries that *text*, from the loader or a driver, says could not be found."""
    return tuple(dict.fromkeys(match["library"] for match in _NOT_FOUND.finditer(text)))


def wheel_libraries() -> dict[str, Path]:
    """Return the libraries of NVIDIA's wheels by name: no loader finds those by itself."""
    try:
        spec = find_spec("nvidia")
    except (ImportError, ValueError):
        return {}
    folders = (spec.submodule_search_locations or ()) if spec else ()
    files = (file for folder in folders for file in sorted(Path(folder).glob("*/lib/*.so*")))
    return {file.name: file for file in files}


def opened_later(path: Path) -> tuple[str, ...]:
    """Return what *path* needs without naming it, and opens by itself only when it runs.

    That is cuDNN for the library of CUDA; TensorRT's of the same build does name it.
    """
    beside = path.with_name(path.name.replace("providers_cuda", "providers_tensorrt"))
    if beside == path or not beside.is_file():
        return ()
    return tuple(name for name in needs_of(beside).libraries if name.startswith("libcudnn"))


def preload(path: Path) -> tuple[Path, ...]:
    """Load what *path* needs from NVIDIA's wheels, as importing torch would; return what was.

    Libraries that the loader finds by itself are left to it, so a system's CUDA keeps its place,
    and so does the copy of torch where that was imported before.
    """
    if sys.platform != "linux":
        return ()
    loaded: list[Path] = []
    bundled = wheel_libraries()
    for name in (*needs_of(path).libraries, *opened_later(path)) if bundled else ():
        _load_bundled(name, bundled, loaded)
    return tuple(loaded)


def _load_bundled(name: str, bundled: dict[str, Path], loaded: list[Path]) -> None:
    if name not in bundled or bundled[name] in loaded:
        return
    try:
        ctypes.CDLL(name)
    except OSError:
        for needed in needs_of(bundled[name]).libraries:
            _load_bundled(needed, bundled, loaded)
        ctypes.CDLL(str(bundled[name]), mode=ctypes.RTLD_GLOBAL)
        loaded.append(bundled[name])


def install_hint(missing: tuple[str, ...], cuda_version: str = "") -> str:
    """Return how to get the libraries *missing*, for a build made for *cuda_version*."""
    major = cuda_version.partition(".")[0]
    packages: dict[str, None] = {}
    others: dict[str, list[str]] = {}
    for name in missing:
        brings = _BRINGS.get(name.partition(".so")[0], "")
        if brings.startswith("nvidia-"):
            packages[_package(brings, major)] = None
        else:
            others.setdefault(brings, []).append(name)
    hints = [f"pip install {' '.join(packages)}"] if packages else []
    for brings, names in others.items():
        hints.append(f"install {brings or 'them'}, for {', '.join(names)}")
    return "; ".join(hints)


def _package(name: str, major: str) -> str:
    if "{major}" in name:
        return name.format(major=major or "13")
    old = major.isdigit() and int(major) < _SUFFIXED_BEFORE
    return f"{name}-cu{major}" if old else name
