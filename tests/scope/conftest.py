"""The frameworks that scopes are tried on, each with three devices that need no hardware."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device
from devicecore.optional import installed, package_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAKE_DEVICE = Path(__file__).with_name("fake_paddle_device.c")


class Framework:
    """One framework: where its factories put things, and what scopes are tried with.

    ``a`` is where things land outside of all scopes, ``b`` and ``c`` where they land in the scopes
    ``of_b`` and ``of_c``.
    """

    name: str
    a: str
    b: str
    c: str
    of_b: Any
    of_c: Any
    is_process_wide = False

    def where(self) -> str:
        """Make something, and return where it is."""
        raise NotImplementedError

    def set_c(self) -> bool:
        """Make ``c`` the default by the framework's own function; False if it has none."""
        return False


class Torch(Framework):
    """torch: the CPU, ``meta``, and the CPU by the other name that torch tells apart."""

    name = "torch"
    a, b, c = "cpu", "meta", "cpu:0"
    of_b, of_c = "meta", Device("/device:OTHER:0", torch_device="cpu:0")

    def __init__(self) -> None:
        torch: Any = import_module("torch")
        self.torch = torch

    def where(self) -> str:
        default = self.torch.get_default_device()
        assert self.torch.empty(1).device.type == default.type  # tensors drop the CPU's index
        return str(default)

    def set_c(self) -> bool:
        self.torch.set_default_device("cpu:0")
        return True


class Jax(Framework):
    """JAX on four devices of the host."""

    name = "jax"
    a, b, c = "0", "1", "2"
    of_b, of_c = "cpu:1", "cpu:2"

    def __init__(self) -> None:
        jax: Any = import_module("jax")
        jax.config.update("jax_num_cpu_devices", 4)
        self.jax = jax

    def where(self) -> str:
        return str(self.jax.numpy.zeros(1).device.id)

    def set_c(self) -> bool:
        self.jax.config.update("jax_default_device", self.jax.devices()[2])
        return True


class TensorFlow(Framework):
    """TensorFlow on four logical CPUs."""

    name = "tensorflow"
    a, b, c = "0", "1", "2"
    of_b, of_c = "cpu:1", "cpu:2"

    def __init__(self) -> None:
        tensorflow: Any = import_module("tensorflow")
        config = tensorflow.config
        parts = [config.LogicalDeviceConfiguration() for _ in range(4)]
        config.set_logical_device_configuration(config.list_physical_devices("CPU")[0], parts)
        self.tensorflow = tensorflow

    def where(self) -> str:
        return str(self.tensorflow.zeros(1).device.rpartition(":")[2])


class Paddle(Framework):
    """Paddle on four fake custom devices."""

    name = "paddle"
    a, b, c = "custom_cpu:0", "custom_cpu:1", "custom_cpu:2"
    of_b, of_c = "custom_cpu:1", "custom_cpu:2"
    is_process_wide = True

    def __init__(self) -> None:
        paddle: Any = import_module("paddle")
        self.paddle = paddle

    def where(self) -> str:
        return str(self.paddle.zeros([1]).place).removeprefix("Place(").removesuffix(")")

    def set_c(self) -> bool:
        self.paddle.device.set_device("custom_cpu:2")
        return True


def in_thread(function: Callable[[], Any]) -> Any:
    """Run *function* in a thread of its own and return what it returns."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(60)


def in_child(code: str) -> Any:
    """Run *code* in a process of its own and return what it prints last, as JSON."""
    path = f"import json, sys; sys.path[:] = {sys.path!r}\n"
    run = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


KINDS: dict[str, type[Framework]] = {kind.name: kind for kind in (Torch, Jax, TensorFlow, Paddle)}
HERE = [name for name in KINDS if installed(name)]


@pytest.fixture(scope="session")
def made_frameworks() -> dict[str, Framework]:
    """What was imported in this run so far."""
    return {}


@pytest.fixture(params=HERE)
def framework(
    request: pytest.FixtureRequest,
    made_frameworks: dict[str, Framework],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Framework]:
    """Each framework that is installed, as it was found."""
    found = the(request.param, made_frameworks, tmp_path_factory)
    assert found.where() == found.a
    yield found
    assert found.where() == found.a


def the(name: str, made: dict[str, Framework], folders: pytest.TempPathFactory) -> Framework:
    """Return a framework, imported once."""
    if name not in made:
        if name == "paddle":
            load_fake_device(folders.mktemp("paddle"))
        made[name] = KINDS[name]()
    return made[name]


def load_fake_device(folder: Path) -> None:
    """Build the fake device, and let Paddle find it when it is imported."""
    paddle = package_dir("paddle")
    assert paddle is not None
    library = folder / "libfake_paddle_device.so"
    command = ["g++", "-shared", "-fPIC", "-w", "-I", str(paddle / "include"), str(FAKE_DEVICE)]
    subprocess.run([*command, "-o", str(library)], check=True)
    os.environ["CUSTOM_DEVICE_ROOT"] = str(folder)
