"""Modules of a program that are called like a framework, and frameworks without any device."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.errors import NotLiveError
from devicecore.frameworks.jax import JaxDefault
from devicecore.frameworks.paddle import PaddleDefault
from devicecore.names import DeviceName
from devicecore.runtime import host_cpu
from devicecore.scope.adapters import placement

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import numpy as np
import devicecore
from devicecore import current_device, cv, device_scope

with device_scope("cpu"):
    import cupy, jax, paddle, tensorflow, torch

with device_scope("cpu", frameworks=("paddle", "jax", "tensorflow", "cupy", "torch")):
    assert current_device().device_type == "CPU"

@device_scope("cpu:0")
def run():
    return paddle.speed + jax.speed + tensorflow.speed + cupy.speed + torch.speed

moved = devicecore.tensors_to_device({"image": np.ones((2, 2), np.uint8)}, "cpu")
assert devicecore.to_numpy(moved["image"]).sum() == cv.add(moved["image"], 0).sum() == 4
print(run())
"""
CONTENTS = {
    "plain": "speed = 3",
    "some of its names": "speed = 3\ndevice = 'left'\nconfig = {}\nclass Tensor: pass\n",
    "all of its names": """
speed = 3
class Tensor: pass
ndarray = Array = Tensor
class device:
    def get_device(): raise RuntimeError("of a game")
    set_device = __init__ = get_device
class config:
    update = list_logical_devices = local_devices = device.get_device
default_device = local_devices = inside_function = config.update
class cuda: runtime = None
class _C: _len_torch_function_stack = config.update
""",
    "any name": "speed = 3\ndef __getattr__(name): return lambda *args, **kwargs: 7",
    "lazy names that fail": "speed = 3\ndef __getattr__(name): raise RuntimeError(name)",
    "a mock": """
import sys
from unittest.mock import MagicMock
sys.modules[__name__] = MagicMock(__spec__=__spec__, speed=3)
""",
}


@pytest.mark.parametrize("contents", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("is_package", [False, True])
def test_modules_of_the_program(contents: str, is_package: bool, tmp_path: Path) -> None:
    for name in ("paddle", "jax", "tensorflow", "cupy", "torch"):
        place = tmp_path / name / "__init__.py" if is_package else tmp_path / f"{name}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(contents)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("15\n", "")


def test_a_jax_that_is_to_use_what_its_wheel_has_not() -> None:
    """A fake of JAX's CPU wheel under ``JAX_PLATFORMS=cuda``, which fails like that."""

    def local_devices(**_: Any) -> Any:
        raise AssertionError

    jax: Any = SimpleNamespace(
        local_devices=local_devices, config=SimpleNamespace(jax_platforms="cuda")
    )
    adapter = JaxDefault(jax)
    assert not adapter.knows(host_cpu().parsed_name)
    with pytest.raises(NotLiveError, match="0 devices of that kind, limited to JAX_PLATFORMS=cuda"):
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


def test_a_framework_that_cannot_list_its_devices() -> None:
    """A fake of one whose driver fails, as TensorFlow's does with an error of its own class."""

    class InternalError(Exception):
        def __str__(self) -> str:
            return "failed call to cuInit: UNKNOWN ERROR (303)"

    def fail(**_: object) -> Any:
        raise InternalError

    jax: Any = SimpleNamespace(config=SimpleNamespace(jax_platforms="cuda"), local_devices=fail)
    adapter = JaxDefault(jax)
    placed = placement(host_cpu(), None, (adapter,))
    assert (placed.places, len(placed.refused)) == ((), 1)
    assert "InternalError: failed call to cuInit" in placed.refused[0][1]
    with pytest.raises(NotLiveError, match="failed call to cuInit"):
        placement(host_cpu(), frozenset({"jax"}), (adapter,))
