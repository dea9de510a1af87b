"""What is installed, learnt without importing it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from devicecore.errors import MissingDependencyError
from devicecore.optional import installed, package_dir, require, version_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that packages can be put into."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def put(folder: Path, package: str, **files: str) -> None:
    (folder / package).mkdir()
    for name, text in ({"__init__": ""} | files).items():
        (folder / package / f"{name}.py").write_text(text, encoding="utf-8")


def test_an_installed_package_is_found_and_not_imported(packages: Path) -> None:
    put(packages, "explosive_package", __init__="raise SystemExit('it was imported')")
    assert installed("explosive_package")
    assert package_dir("explosive_package") == packages / "explosive_package"
    assert "explosive_package" not in sys.modules


def test_a_missing_package_is_not_installed() -> None:
    assert not installed("no_such_package")
    assert package_dir("no_such_package") is None
    assert version_of("no_such_package") is None


def test_a_folder_left_behind_is_no_package(packages: Path) -> None:
    (packages / "left_behind").mkdir()
    assert not installed("left_behind")


def test_a_module_that_was_blocked_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert not installed("torch")


def test_a_half_made_module_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("without_a_spec")
    module.__spec__ = None
    monkeypatch.setitem(sys.modules, "without_a_spec", module)
    assert not installed("without_a_spec")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"version": "__version__ = '2.13.0+cpu'\n"}, "2.13.0+cpu"),
        ({"version": "from x import y\n__version__: str = \"1.2\"\ncuda = '13'\n"}, "1.2"),
        ({"_version": "version = '0.4'"}, "0.4"),
        ({"__init__": "'''doc'''\n__version__ = '1.32.0'\nimport nothing_there"}, "1.32.0"),
        ({"version": "__version__ = compute()", "__init__": "__version__ = '3'"}, "3"),
        ({"__init__": "x = 1"}, None),
        ({"__init__": "__version__ = '1' # x\udce9"}, "1"),
    ],
    ids=["plain", "typed", "_version", "init", "computed", "none", "undecodable"],
)
def test_the_version_is_read_from_the_files(
    files: dict[str, str], expected: str | None, packages: Path
) -> None:
    put(packages, "some_package")
    for name, text in files.items():
        (packages / "some_package" / f"{name}.py").write_bytes(
            text.encode("utf-8", "surrogateescape")
        )
    assert version_of("some_package") == expected
    assert "some_package" not in sys.modules


def test_require_imports(packages: Path) -> None:
    put(packages, "fine_package", __init__="answer = 42")
    assert require("fine_package", extra="torch").answer == 42


def test_require_says_which_extra_brings_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"devicecore\[vision\]") as caught:
        require("no_such_package", extra="vision")
    assert (caught.value.module, caught.value.extra) == ("no_such_package", "vision")


def test_an_error_from_inside_goes_through(packages: Path) -> None:
    put(packages, "broken_inside", __init__="import no_such_dependency")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        require("broken_inside", extra="torch")
    assert not isinstance(caught.value, MissingDependencyError)


def test_asking_for_the_frameworks_imports_none_of_them() -> None:
    code = (
        "import sys\n"
        "from devicecore.optional import installed, version_of\n"
        "for name in ('torch', 'onnxruntime', 'cv2', 'numpy'):\n"
        "    installed(name), version_of(name)\n"
        "print({'torch', 'onnxruntime', 'cv2', 'numpy'} & set(sys.modules))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "set()"
