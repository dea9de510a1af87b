"""Packages that are hidden, emptied or built for another one: real files of the real packages."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attr
import attrs
import packaging
import pytest

from devicecore.optional.packages import FRAMEWORKS
from tests.doctor.conftest import SAYS_NOTHING, record

if TYPE_CHECKING:
    from collections.abc import Callable

    Findings = Callable[..., list[dict[str, str]]]

MODULES = ("onnxruntime", "torch", "cv2", "numpy")

PROBE = """
import json
from devicecore.ort import provider_metadata
from devicecore_factories.cpu import ThreadPoolDeviceFactory
answers = ThreadPoolDeviceFactory().probe(deep={deep}).frameworks
print(json.dumps({{name: [each.state, each.reason, each.fix] for name, each in answers.items()}}))
"""
ERROR = """
import json
from devicecore.errors import DeviceCoreError
from devicecore import cv
try:
    cv.{name}
except DeviceCoreError as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""

COMPUTE = """
import json
import numpy
from devicecore import default_manager
from devicecore.errors import NoKernelError
said = []
for asked in (default_manager(), default_manager().host_cpu):
    try:
        asked.compute("cv2.resize", numpy.zeros((4, 4), "uint8"), (2, 2))
    except NoKernelError as error:
        said.append([error.fix, str(error)])
print(json.dumps(said))
"""


def named(found: list[dict[str, str]], name: str) -> dict[str, str]:
    matching = [finding for finding in found if finding["name"] == name]
    assert len(matching) == 1, found
    return matching[0]


def linked_without(module: str, folder: Path, *patterns: str) -> Path:
    """Put links to the files of a real package into *folder*, without some of them."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        pytest.skip(f"{module} is not installed")
    source, target = Path(spec.origin).parent, folder / module
    target.mkdir(parents=True)
    for file in source.iterdir():
        if not any(file.match(pattern) for pattern in patterns):
            (target / file.name).symlink_to(file)
    return target


def link_requirements(folder: Path) -> None:
    """Put links to what devicecore itself imports into *folder*."""
    for package in (attr, attrs, packaging):
        source = Path(str(package.__file__)).parent
        (folder / source.name).symlink_to(source)


# Nothing is installed but what lies in the folder.
ALONE = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"


# --- files of the program -----------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("as_folder", [False, True], ids=["file", "folder"])
def test_a_file_with_the_name_of_a_package(
    findings: Findings, told: Callable[..., Any], tmp_path: Path, module: str, as_folder: bool
) -> None:
    pytest.importorskip(module)
    path = tmp_path / module if as_folder else tmp_path / f"{module}.py"
    if as_folder:
        path.mkdir()
    (path / "__init__.py" if as_folder else path).write_text("answer = 42\n")
    names = {each["name"] for each in findings(tmp_path)}
    assert names.isdisjoint({"emptied-package", "two-onnxruntime-packages"})  # it is only hidden
    found = named(findings(tmp_path), "shadowed-package")
    assert str(path) in found["evidence"]
    assert found["fix"].startswith(f"rename {path}, ")
    for deep in (False, True):
        answers = told(PROBE.format(deep=deep), tmp_path)
        framework = {"torch": "torch", "onnxruntime": "onnx", "numpy": "onnx"}.get(module)
        if framework:
            state, reason, fix = answers[framework]
            assert (state, fix) == ("shadowed", found["fix"])
            assert str(path) in reason
    if module in ("cv2", "numpy"):
        name, text = told(ERROR.format(name="Canny"), tmp_path)
        assert name == "BrokenPackageError"
        assert str(path) in text


@pytest.mark.parametrize("module", MODULES)
def test_a_file_in_the_folder_where_programs_start(
    told: Callable[..., Any], tmp_path: Path, module: str
) -> None:
    """The doctor itself does not look there, as a command of its own; a program would."""
    pytest.importorskip(module)
    (tmp_path / f"{module}.py").touch()
    code = (
        "import json, sys; sys.path[:] = [p for p in sys.path if p]\n"
        "from devicecore.doctor import Case, packages\n"
        "print(json.dumps([[f.name, f.evidence] for f in packages.find(Case())]))"
    )
    ((name, evidence),) = told(code, cwd=tmp_path)
    assert name == "shadowed-package"
    assert str(tmp_path / f"{module}.py") in evidence
    assert told(code, cwd=tmp_path.parent) == []


@pytest.mark.parametrize("module", sorted(FRAMEWORKS))
@pytest.mark.parametrize("as_folder", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize("on_path", [False, True])
def test_a_file_of_that_name_where_nothing_is_installed(
    told: Callable[..., Any], tmp_path: Path, module: str, as_folder: bool, on_path: bool
) -> None:
    """Whoever installs the package gets the file all the same."""
    for package in ("attr", "attrs", "packaging"):
        spec = find_spec(package)
        folder = Path(str(spec and spec.origin)).parent
        (tmp_path / "lib" / folder.name).parent.mkdir(exist_ok=True)
        (tmp_path / "lib" / folder.name).symlink_to(folder)
    place = tmp_path / "program"
    place.mkdir()
    path = place / module if as_folder else place / f"{module}.py"
    if as_folder:
        path.mkdir()
    (path / "__init__.py" if as_folder else path).write_text("answer = 42\n")
    code = (
        "import json, sys\n"
        "sys.path[:] = [p for p in sys.path if p and 'site-packages' not in p]\n"
        "from devicecore.doctor import Case, packages\n"
        "from devicecore.errors import DeviceCoreError\n"
        "from devicecore.optional import require\n"
        "found = [[f.name, f.evidence, f.fix, f.is_advice] for f in packages.find(Case())]\n"
        f"try:\n    require({module!r}, extra='all')\n"
        "except DeviceCoreError as error:\n    print(json.dumps([found, str(error)]))"
    )
    folders = [tmp_path / "lib", *([place] if on_path else [])]
    (finding,), said = told(code, *folders, cwd=place)
    name, evidence, fix, is_advice = finding
    assert name == "shadowed-package"
    assert is_advice == (module not in MODULES)  # who never wants the package may have such a file
    assert f"{path} has the name of the package {module}, which is not installed" in evidence
    assert fix.startswith(f"rename {path}, ")
    assert fix.endswith(f"before {module} is installed")
    assert (fix in said) == on_path


LATE = """
import json
from devicecore.errors import BrokenPackageError
try:
    from {home} import {name}
except BrokenPackageError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.parametrize(
    ("home", "name", "module"),
    [
        ("devicecore.migrate", "DeviceLoader", "torch"),
        ("devicecore.migrate", "DeviceLoader", "numpy"),
        ("devicecore.onnx", "OnnxModel", "numpy"),
        ("devicecore.cv", "Pipeline", "cv2"),
        ("devicecore.cv", "Pipeline", "numpy"),
        ("devicecore.cv", "preprocess", "numpy"),
        ("devicecore.cv", "createCLAHE", "cv2"),
        ("devicecore.testing", "OnnxBackend", "numpy"),
    ],
)
@pytest.mark.parametrize("as_folder", [False, True], ids=["file", "folder"])
def test_what_is_imported_late_names_the_file(
    told: Callable[..., Any], tmp_path: Path, home: str, name: str, module: str, as_folder: bool
) -> None:
    pytest.importorskip(module)
    path = tmp_path / module if as_folder else tmp_path / f"{module}.py"
    if as_folder:
        path.mkdir()
    (path / "__init__.py" if as_folder else path).write_text("answer = 42\n")
    said = told(LATE.format(home=home, name=name), tmp_path)
    assert f"{path} goes before the installed package {module}" in said
    assert f"rename {path}, " in said


# --- emptied packages ---------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["cv2", "torch", "numpy"])
def test_an_emptied_package(
    findings: Findings, told: Callable[..., Any], tmp_path: Path, module: str
) -> None:
    """As one of two wheels leaves it that share the folder, when it is uninstalled."""
    folder = linked_without(module, tmp_path, "__init__.py")
    distribution = {"cv2": "opencv-python-headless"}.get(module, module)
    record(tmp_path, distribution, "9.9", module)
    code = (
        f"{ALONE}import json\nfrom devicecore.doctor import Case, packages\n"
        "print(json.dumps([[f.name, f.evidence, f.fix] for f in packages.find(Case())]))"
    )
    link_requirements(tmp_path)
    ((name, evidence, fix),) = told(code, tmp_path)
    assert name == "emptied-package"
    assert str(folder) in evidence
    assert fix == f"pip install --force-reinstall --no-deps {distribution}"
    if module == "cv2":
        for source in Path(str(packaging.__file__)).parents[1].glob("numpy*"):
            (tmp_path / source.name).symlink_to(source)
        name, text = told(ALONE + ERROR.format(name="Canny"), tmp_path)
        assert name == "BrokenPackageError"
        assert fix in text
        assert str(folder) in text
        said = told(ALONE + COMPUTE, tmp_path)
        for known, text in said:
            assert known == fix
            assert text.endswith(fix)
            assert "refused" in text
            assert str(folder) in text
            assert "KeyError" not in text
            assert "@kernel" not in text
        assert [text.count(str(folder)) for _, text in said] == [1, 2]  # once for each module


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("cv2", "opencv-contrib-python-headless"),
        ("torch", "torch"),
        ("numpy", "numpy"),
        ("onnxruntime", "onnxruntime-gpu"),
    ],
)
def test_a_package_of_which_pip_has_a_record_and_no_file(
    told: Callable[..., Any], tmp_path: Path, module: str, distribution: str
) -> None:
    """As one of two wheels leaves it that have the same files, when it is uninstalled."""
    record(tmp_path, distribution, "9.9", module)
    record(tmp_path, "onnxruntime-ep-openvino", "9.9", "onnxruntime_ep_openvino")
    link_requirements(tmp_path)
    code = (
        f"{ALONE}import json\nfrom pathlib import Path\n"
        "from devicecore.liveness import hardware\n"
        f"hardware.ROOT = Path({str(SAYS_NOTHING)!r})\n"
        "from devicecore.doctor import Case, packages, onnxruntime_packages\n"
        "from devicecore.errors import BrokenPackageError\n"
        "from devicecore.optional import require\n"
        "found = [*packages.find(Case()), *onnxruntime_packages.find(Case())]\n"
        f"try:\n    require({module!r}, extra='all')\n"
        "except BrokenPackageError as error:\n"
        "    print(json.dumps([[[f.name, f.fix] for f in found], error.fix]))"
    )
    fix = f"pip install --force-reinstall --no-deps {distribution}"
    name = "two-onnxruntime-packages" if module == "onnxruntime" else "emptied-package"
    assert told(code, tmp_path) == [[[name, fix]], fix]


def test_opencv_without_its_binary(findings: Findings, tmp_path: Path) -> None:
    linked_without("cv2", tmp_path, "cv2*")
    found = named(findings(tmp_path), "emptied-package")
    assert "binary is gone" in found["problem"]
    assert found["fix"].startswith("pip install --force-reinstall --no-deps opencv")


# --- packages that were built for others --------------------------------------------------------


def test_binaries_for_numpy_1(findings: Findings, tmp_path: Path) -> None:
    """A copy of OpenCV's binary that asks for NumPy as old ones did; a slow test has those."""
    folder = linked_without("cv2", tmp_path, "cv2*.so", "cv2*.pyd")
    spec = find_spec("cv2")
    (binary,) = Path(str(spec and spec.origin)).parent.glob("cv2*.so")
    data = binary.read_bytes().replace(b"numpy._core._multiarray", b"numpy.core._multiarray_")
    assert b"numpy.core._multiarray_umath" in data
    assert b"numpy._core._multi" not in data
    (folder / binary.name).write_bytes(data)
    found = named(findings(tmp_path), "numpy-1-binaries")
    assert "cv2 was built for NumPy 1" in found["evidence"]
    assert "'numpy<2'" in found["fix"]


COMPANION = "torchvision"


@pytest.mark.parametrize(
    ("version", "torch", "wants", "count"),
    [
        ("0.29.1+cpu", "2.13.0+cpu", "==2.14.1", 1),
        ("0.28.0+cu130", "2.13.0+cpu", "==2.13.0", 1),
        ("0.28.0+cpu", "2.13.0+cpu", "==2.13.0", 0),
        ("0.28.0", "2.13.0+cpu", "==2.13.0", 0),
        ("0.28.0+cpu", "2.13.0+cpu", "==2.13.0+cpu", 0),
        ("0.28.0", "2.13.0+cpu", "==2.13.0+cu130", 1),
        ("0.28.0+cpu", "2.13.0", "==2.13.0+cpu", 1),
        ("0.28.0+cpu", "2.13.0+cpu", "<=2.13.0", 0),
        ("0.28.0+cpu", "2.13.0+cpu", "<2.13.0", 1),
        ("0.28.0+cpu", "2.13.0+cpu", ">2.13.0", 1),
        ("0.28.0a0", "2.13.0a0+gitabc", ">=2.13.0a0", 0),
        ("not a version", "2.13.0", "==1", 0),
    ],
)
def test_torchvision_for_another_torch(
    findings: Findings, tmp_path: Path, version: str, torch: str, wants: str, count: int
) -> None:
    """What the files say is made up; a slow test has a real wheel."""
    for name, stated in (("torch", torch), (COMPANION, version)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "version.py").write_text(f"__version__ = '{stated}'\n")
    record(tmp_path, COMPANION, "0.28.0", COMPANION)
    (metadata,) = tmp_path.glob(f"{COMPANION}-*/METADATA")
    metadata.write_text(
        metadata.read_text() + f"Requires-Dist: numpy\nRequires-Dist: torch{wants}\n"
    )
    found = [f for f in findings(tmp_path) if f["name"] == "torchvision-for-another-torch"]
    assert len(found) == count
    for each in found:
        assert torch in each["evidence"]
        assert each["fix"].endswith("pip install torch torchvision")


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info[:2] != (3, 11),
    reason="the pinned wheels are those of Linux and Python 3.11",
)
def test_real_wheels_for_numpy_1_and_for_another_torch(
    findings: Findings, told: Callable[..., Any], environment: Any, tmp_path: Path
) -> None:
    wheels = ("onnxruntime==1.18.1", "opencv-python-headless==4.9.0.80", "torchvision==0.29.1")
    environment.pip("install", "--no-deps", "--target", str(tmp_path), *wheels)
    found = findings(tmp_path)
    assert named(found, "torchvision-for-another-torch")
    for module in ("onnxruntime", "cv2"):
        (one,) = [f for f in found if f["name"] == "numpy-1-binaries" and module in f["problem"]]
        assert f"{module} was built for NumPy 1" in one["evidence"]
    state, reason, fix = told(PROBE.format(deep=True), tmp_path)["onnx"]
    assert state == "broken"
    assert reason.startswith("onnxruntime was built for NumPy 1, and NumPy 2.")
    assert "'numpy<2'" in fix
    name, text = told(ERROR.format(name="Canny"), tmp_path)
    assert name == "BrokenPackageError"
    assert "cv2 was built for NumPy 1" in text
