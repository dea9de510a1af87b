"""Modules of a program that are called like a framework, and frameworks without any device."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.runtime import host_cpu
from devicecore.scope.jax_default import JaxDefault

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import {name}
from devicecore import current_device, device_scope

with device_scope("cpu"):
    assert current_device().device_type == "CPU"

@device_scope("cpu:0")
def run():
    return {name}.speed

print(run())
"""
CONTENTS = ["speed = 3", "speed = 3\ndevice = 'left'\nconfig = {}\nclass Tensor: pass\n"]


@pytest.mark.parametrize("contents", CONTENTS)
@pytest.mark.parametrize("name", ["paddle", "jax", "tensorflow", "cupy", "torch"])
@pytest.mark.parametrize("is_package", [False, True])
def test_a_module_of_the_program(
    name: str, contents: str, is_package: bool, tmp_path: Path
) -> None:
    place = tmp_path / name / "__init__.py" if is_package else tmp_path / f"{name}.py"
    place.parent.mkdir(exist_ok=True)
    place.write_text(contents)
    (tmp_path / "program.py").write_text(PROGRAM.format(name=name))
    done = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_a_jax_that_is_to_use_what_its_wheel_has_not() -> None:
    """A fake of JAX's CPU wheel under ``JAX_PLATFORMS=cuda``, which fails like that."""
    from devicecore.errors import NotLiveError

    def local_devices(**_: Any) -> Any:
        raise AssertionError

    jax: Any = SimpleNamespace(
        local_devices=local_devices, config=SimpleNamespace(jax_platforms="cuda")
    )
    adapter = JaxDefault(jax)
    assert not adapter.knows(host_cpu().parsed_name)
    with pytest.raises(NotLiveError, match="JAX has 0 devices"):
        adapter.place_of(host_cpu())
