"""The extras of this distribution: none of them installs what another one overwrites."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from devicecore.optional import package_dir

ROOT = Path(__file__).parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
    "project"
]["optional-dependencies"]
# Distributions that own one import folder.
SAME_FOLDER = {
    "cv2": re.compile(r"opencv-(contrib-)?python(-headless)?"),
    "onnxruntime": re.compile(r"onnxruntime(-(gpu|openvino|directml|rocm|migraphx|qnn))?"),
}
MODULES = {
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "scikit-image": "skimage",
    "onnxruntime-ep-openvino": "onnxruntime_ep_openvino",
}


def distributions(extra: str) -> set[str]:
    """Return what *extra* asks for, through other extras as well."""
    found: set[str] = set()
    for text in EXTRAS[extra]:
        requirement = Requirement(text)
        if requirement.name == "devicecore":
            found = found.union(*map(distributions, requirement.extras))
        else:
            found.add(requirement.name)
    return found


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("folder", SAME_FOLDER)
def test_one_distribution_owns_an_import_folder(extra: str, folder: str) -> None:
    owners = {name for name in distributions(extra) if SAME_FOLDER[folder].fullmatch(name)}
    assert len(owners) <= 1


def test_all_is_all() -> None:
    assert distributions("all") == set().union(*map(distributions, EXTRAS))


@pytest.fixture(scope="module")
def code() -> str:
    folders = [package_dir("devicecore"), package_dir("devicecore_factories")]
    files = [file for folder in folders if folder for file in folder.rglob("*.py")]
    return "\n".join(file.read_text("utf-8") for file in files)


@pytest.mark.parametrize("name", sorted(distributions("all")))
def test_what_an_extra_brings_is_used(name: str, code: str) -> None:
    module = MODULES.get(name, name)
    assert re.search(rf"(import|from|[\"\']){{1}} ?{module}\b", code), f"nothing imports {module}"


def test_errors_name_extras_that_exist(code: str) -> None:
    named = set(re.findall(r"extra=\"(\w+)\"", code)) | set(
        re.findall(r"devicecore\[(\w+)\]", code)
    )
    assert named <= EXTRAS.keys()


@pytest.mark.slow
def test_no_package_behind_an_extra_brings_a_second_owner(environment: Any, tmp_path: Path) -> None:
    """Nothing is installed: pip tells what it would install, and what that asks for in turn."""
    report = tmp_path / "report.json"
    wanted = sorted(text for texts in EXTRAS.values() for text in texts if "devicecore" not in text)
    # `make nightly` runs the tests two folders below that file.
    pinned = [folder / "constraints-cpu.txt" for folder in (ROOT, ROOT.parents[1])]
    constraints = [f"--constraint={file}" for file in pinned if file.is_file()][:1]
    environment.pip(
        "install", "--dry-run", "--ignore-installed", "--report", str(report), *constraints, *wanted
    )
    names = [each["metadata"]["name"] for each in json.loads(report.read_text())["install"]]
    for pattern in SAME_FOLDER.values():
        assert len([name for name in names if pattern.fullmatch(name)]) == 1
