"""What `import devicecore` gives, and what it costs."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import devicecore

FRAMEWORKS = ("torch", "numpy", "onnxruntime", "cv2", "ray", "jax")


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_every_public_name_exists_and_is_listed() -> None:
    for name in devicecore.__all__:
        assert getattr(devicecore, name) is not None
    assert set(devicecore.__all__) <= set(dir(devicecore))
    assert devicecore.__all__ == sorted(devicecore.__all__)


def packages() -> list[str]:
    """Return the packages that say which of their names are public."""
    inits = Path(devicecore.__file__).parent.glob("*/__init__.py")
    found = [path for path in inits if "__all__" in path.read_text(encoding="utf-8")]
    return sorted(f"devicecore.{path.parent.name}" for path in found)


@pytest.mark.parametrize("name", packages())
def test_a_package_lists_its_public_names_only(name: str) -> None:
    if name in {"devicecore.cv", "devicecore.migrate"}:
        pytest.importorskip("cv2")
        pytest.importorskip("torch")
    package = importlib.import_module(name)
    listed = set(dir(package))
    assert set(package.__all__) <= listed
    assert not [each for each in listed if each.startswith("_")]
    assert all(hasattr(package, each) for each in listed)
    if name == "devicecore.cv":
        listed -= {*dir(importlib.import_module("cv2")), "createCLAHE"}
    assert listed == set(package.__all__)


def test_all_public_packages_are_looked_at() -> None:
    names = {"cv", "doctor", "migrate", "onnx", "testing"}
    assert {f"devicecore.{name}" for name in names} <= {*packages()}


def test_type_checkers_see_the_same_names() -> None:
    """The lazy table and the block for type checkers cannot drift apart."""
    tree = ast.parse(Path(devicecore.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen == set(devicecore.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'devise'"):
        devicecore.devise  # noqa: B018 - the access is what is tested


def test_importing_imports_no_framework() -> None:
    code = f"import sys, devicecore; print(set({FRAMEWORKS}) & set(sys.modules))"
    assert run(code) == "set()"


def test_using_the_core_imports_no_framework() -> None:
    code = (
        "import sys; from devicecore import DeviceMgr, device_scope, resolve, Registrar;"
        f"print(set({FRAMEWORKS}) & set(sys.modules))"
    )
    assert run(code) == "set()"


def test_importing_reads_no_variable_and_opens_no_file_or_socket() -> None:
    """An audit hook sees every file that is opened; only our own modules may be."""
    code = """
import sys
seen = []
def hook(event, args):
    if event == "open" and isinstance(args[0], str) and not args[0].endswith((".py", ".pyc")):
        seen.append(args[0])
    if event.startswith(("socket.", "subprocess.")):
        seen.append(event)
sys.addaudithook(hook)
import os
class Watched(dict):
    def __getitem__(self, key): seen.append(key); return dict.__getitem__(self, key)
    def get(self, key, default=None): seen.append(key); return dict.get(self, key, default)
os.environ = Watched(os.environ)
import devicecore
print(seen)
"""
    assert run(code) == "[]"


def test_one_file_reads_the_environment() -> None:
    package = Path(devicecore.__file__).parent
    factories = package.parent / "factories" / "devicecore_factories"
    readers = {
        file.name
        for folder in (package, factories)
        for file in folder.rglob("*.py")
        if re.search(r"os\.environ|getenv", file.read_text(encoding="utf-8"))
    }
    assert readers == {"config.py"}
