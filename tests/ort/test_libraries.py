"""What libraries need, read from real ones and from copies with another name written into them."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from devicecore.ort import missing_libraries, ort_package, provider_library
from devicecore.ort.elf import needs_of
from devicecore.ort.libraries import install_hint, libraries_named_in, opened_later

onnxruntime = pytest.importorskip("onnxruntime")
_spec = find_spec("numpy._core._multiarray_umath")
LIBRARY = Path(str(_spec and _spec.origin))

needs_elf = pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")


def renamed(tmp_path: Path, names: dict[bytes, bytes]) -> Path:
    """Return a copy of a real library that needs other libraries than the real one."""
    data = LIBRARY.read_bytes()
    for old, new in names.items():
        assert old in data
        assert len(old) == len(new)
        data = data.replace(old + b"\0", new + b"\0")
    copy = tmp_path / "liba.so"
    copy.write_bytes(data)
    return copy


@needs_elf
def test_the_needs_are_those_that_the_loader_sees() -> None:
    needs = needs_of(LIBRARY)
    assert "libc.so.6" in needs.libraries
    listed = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert all(name in listed for name in needs.libraries)


@needs_elf
def test_nothing_is_missing_where_it_loads() -> None:
    assert missing_libraries(LIBRARY) == ()


@needs_elf
def test_all_missing_libraries_are_named_at_once(tmp_path: Path) -> None:
    copy = renamed(tmp_path, {b"libc.so.6": b"libq.so.6", b"libm.so.6": b"libz.so.9"})
    assert set(missing_libraries(copy)) == {"libq.so.6", "libz.so.9"}


@needs_elf
def test_what_a_library_next_to_it_misses_counts_too(tmp_path: Path) -> None:
    inner = renamed(tmp_path, {b"libc.so.6": b"libq.so.6"})
    openvino = pytest.importorskip("onnxruntime_ep_openvino", reason="no library with a run path")
    outer = tmp_path / "outer.so"
    outer.write_bytes(Path(openvino.get_library_path()).read_bytes())
    first, *others = (n for n in needs_of(outer).libraries if "openvino" in n)
    inner.rename(tmp_path / first)
    # In a process of its own: what another test has loaded here counts as found.
    code = "import sys; from pathlib import Path; from devicecore.ort import missing_libraries"
    code += "; print(*missing_libraries(Path(sys.argv[1])))"
    told = subprocess.run(
        [sys.executable, "-c", code, outer], capture_output=True, text=True, check=True
    ).stdout
    assert {"libq.so.6", *others} <= set(told.split())


def test_a_missing_file_is_missing_itself(tmp_path: Path) -> None:
    assert missing_libraries(tmp_path / "gone.so") == ("gone.so",)


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b"\x7fELF", LIBRARY.read_bytes()[:4000], b"\x7fELF\x02\x01" + b"\xff" * 200],
    ids=["empty", "text", "magic", "cut", "nonsense"],
)
def test_of_other_files_nothing_is_said(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "odd.so"
    file.write_bytes(content)
    assert missing_libraries(file) == ()


def test_hints_name_the_packages_of_the_right_cuda() -> None:
    missing = ("libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9", "libcuda.so.1", "libx.so")
    assert install_hint(missing, "13.0") == (
        "pip install nvidia-cublas nvidia-cudnn-cu13; install the NVIDIA driver, for libcuda.so.1; "
        "install them, for libx.so"
    )
    assert install_hint(missing[:3], "12.8") == "pip install nvidia-cublas-cu12 nvidia-cudnn-cu12"
    assert install_hint(()) == ""


def test_a_drivers_words_name_the_library() -> None:
    words = "Couldn't load Vulkan: libvulkan.so.1: cannot open shared object file: No such file"
    assert libraries_named_in(words) == ("libvulkan.so.1",)


def test_the_installed_runtime_is_known_without_importing_it() -> None:
    code = (
        "import sys; from devicecore.ort import ort_package; p = ort_package();"
        "print(p.version, {'onnxruntime', 'numpy'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split(" ", 1) == [onnxruntime.__version__, "set()\n"]


def test_a_build_without_a_provider_has_no_library_of_it() -> None:
    package = ort_package()
    assert package is not None
    expected = package.folder / "capi" / "libonnxruntime_providers_cuda.so"
    found = provider_library("CUDAExecutionProvider")
    assert found == (expected if expected.exists() else None)
    assert provider_library("CPUExecutionProvider") is None


@needs_elf
def test_what_nvidias_wheels_hold_is_not_missing_and_is_preloaded(tmp_path: Path) -> None:
    # A stand-in for those wheels: a folder of their shape with a real library under another name.
    user = renamed(tmp_path, {b"libc.so.6": b"libq.so.6"})
    folder = tmp_path / "nvidia" / "thing" / "lib"
    folder.mkdir(parents=True)
    shared = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_shared.so"
    (folder / "libq.so.6").write_bytes(shared.read_bytes())
    code = f"""
from pathlib import Path
import numpy  # whose own libraries the copy needs too
from devicecore.ort.libraries import missing_libraries, preload
library = Path({str(user)!r})
print(missing_libraries(library), [path.name for path in preload(library)])
print("libq.so.6" in Path("/proc/self/maps").read_text())
"""
    path = ":".join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PATH": "", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "() ['libq.so.6']\nTrue\n"
    assert missing_libraries(user) == ("libq.so.6",)


@needs_elf
def test_what_is_opened_later_is_preloaded_too(tmp_path: Path) -> None:
    # Stand-ins with the names of a build for CUDA: its library of CUDA does not name cuDNN.
    shared = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_shared.so"
    cuda = tmp_path / "libonnxruntime_providers_cuda.so"
    cuda.write_bytes(shared.read_bytes())
    assert opened_later(cuda) == ()
    tensorrt = tmp_path / "libonnxruntime_providers_tensorrt.so"
    renamed(tmp_path, {b"libstdc++.so.6": b"libcudnn.so.9\0"}).rename(tensorrt)
    assert opened_later(cuda) == ("libcudnn.so.9",)
    assert opened_later(tensorrt) == ()
    folder = tmp_path / "nvidia" / "cudnn" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcudnn.so.9").write_bytes(shared.read_bytes())
    code = f"""
from pathlib import Path
from devicecore.ort.libraries import preload
print([path.name for path in preload(Path({str(cuda)!r}))])
"""
    path = ":".join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PATH": "", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "['libcudnn.so.9']\n"


def linked(folder: Path, name: str, needs: tuple[Path, ...] = (), *flags: str) -> Path:
    """Return a library made by the compiler, which needs others."""
    folder.mkdir(exist_ok=True)
    file = folder / f"lib{name}.so"
    words = ["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", str(file)]
    words += [f"-Wl,-soname,lib{name}.so", "-Wl,--no-as-needed", *flags]
    words += ["-x", "none", *map(str, needs)]
    subprocess.run(words, check=True, capture_output=True)
    return file


OLD, NEW = ("-Wl,--disable-new-dtags",), ("-Wl,--enable-new-dtags",)
HERE = "-Wl,-rpath,$ORIGIN/libs"


@needs_elf
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler")
@pytest.mark.parametrize(
    ("outer", "middle"),
    [
        ((*OLD, HERE), ()),  # as auditwheel of old leaves a wheel
        ((*NEW, HERE), ()),
        ((*NEW, HERE), (*NEW, "-Wl,-rpath,$ORIGIN")),
        ((*OLD, HERE), (*NEW, "-Wl,-rpath,$ORIGIN/nowhere")),
        ((*OLD, HERE), (*OLD, "-Wl,-rpath,$ORIGIN/nowhere")),
        ((*OLD, "-Wl,-rpath,${ORIGIN}/libs"), ()),
    ],
)
def test_the_loader_and_we_look_in_the_same_folders(
    tmp_path: Path, outer: tuple[str, ...], middle: tuple[str, ...]
) -> None:
    inner = linked(tmp_path / "libs", "devicecore_inner")
    between = linked(tmp_path / "libs", "devicecore_middle", (inner,), *middle)
    library = linked(tmp_path, "devicecore_outer", (between,), *outer)
    load = f"import ctypes; ctypes.CDLL({str(library)!r})"
    loads = subprocess.run([sys.executable, "-c", load], capture_output=True, check=False)
    assert missing_libraries(library) == (("libdevicecore_inner.so",) if loads.returncode else ())


@needs_elf
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler")
def test_what_one_library_loads_is_there_for_the_next(tmp_path: Path) -> None:
    """The first finds it by its own run path, which the second does not inherit."""
    inner = linked(tmp_path / "libs", "devicecore_inner")
    between = linked(tmp_path / "libs", "devicecore_middle", (inner,))
    both = linked(tmp_path, "devicecore_both", (between, inner), *NEW, HERE)
    assert missing_libraries(both) == ()
