"""Modules of a program that are called like a framework, and frameworks without any device."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.names import DeviceName
from devicecore.runtime import host_cpu
from devicecore.scope.jax_default import JaxDefault
from devicecore.scope.paddle_default import PaddleDefault

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


@pytest.mark.parametrize("is_built", [False, True])
def test_an_xpu_of_paddle_is_kunlun(is_built: bool) -> None:
    """A fake of a Paddle that is built for XPU, on a machine with two of them."""
    current = ["cpu"]
    device = SimpleNamespace(
        is_compiled_with_xpu=lambda: is_built,
        get_all_custom_device_type=list,
        get_device=lambda: current[-1],
        set_device=current.append,
    )
    core = SimpleNamespace(get_xpu_device_count=lambda: 2)
    adapter = PaddleDefault(SimpleNamespace(  # type: ignore[arg-type]
        device=device, base=SimpleNamespace(core=core), __version__="3"
    ))  # fmt: skip
    names = [DeviceName.parse(f"xpu:{index}") for index in range(3)]
    assert [adapter.knows(name) for name in names] == [is_built, is_built, False]
    if is_built:
        saved = adapter.enter(adapter.place_of(Device("/device:XPU:1")))
        assert current[-1] == "xpu:1"
        adapter.leave(saved)
        assert current[-1] == "cpu"
