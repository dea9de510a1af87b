"""For all tests: settings of hypothesis, a cache of one's own, a forked child, fake devices."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from devicecore import FactoryRegistry
from devicecore.device import Device
from devicecore.kernels import KernelRegistry
from devicecore.optional import package_dir
from devicecore.runtime import Runtime
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable

# A busy machine is slow, which is no failure. The same commit gives the same verdict each time;
# `make nightly` looks at other cases each night.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("searching", settings.get_profile("repeatable"), derandomize=False)
settings.load_profile("repeatable")

FORK_TIMEOUT_S = 60.0
OURS = ("attrs", "filelock", "packaging", "platformdirs")


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder that this test has for itself."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def in_fork() -> Callable[[Callable[[], Any]], Any]:
    """Return a function that runs another one in a forked child, and returns what that returns.

    An error in the child is a failure here, and so is a child that hangs.
    """
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    return _in_fork


def _in_fork(function: Callable[[], Any]) -> Any:
    source, sink = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of a fork beside threads, which is what these tests are about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            answer: tuple[bool, Any] = (True, function())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent shall see it
            answer = (False, f"{type(error).__name__}: {error}")
        os.write(sink, pickle.dumps(answer))
        os._exit(0)
    os.close(sink)
    try:
        if not select.select([source], [], [], FORK_TIMEOUT_S)[0]:
            pytest.fail("the forked child hangs")
        with os.fdopen(source, "rb", closefd=False) as pipe:
            fine, result = pickle.loads(pipe.read())
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(source)
    assert fine, result
    return result


class Environment:
    """A fresh environment with pip in it."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"

    def pip(self, *words: str) -> None:
        done = subprocess.run(
            [self.python, "-m", "pip", "--disable-pip-version-check", "--quiet", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip(f"pip finds no {words[-1]} here")
        assert done.returncode == 0, done.stderr


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Return a fresh environment with what our packages need."""
    return _environment(tmp_path)


@pytest.fixture(scope="session")
def environment_with(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Environment]:
    """Return a function that gives an environment with some packages, made once for all tests."""

    @cache
    def make(*packages: str) -> Environment:
        made = _environment(tmp_path_factory.mktemp("environment"))
        made.pip("install", *packages)
        return made

    return make


def _environment(folder: Path) -> Environment:
    made = Environment(folder / "venv")
    made.pip("install", *OURS)
    return made


@pytest.fixture(scope="session")
def our_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with our packages and nothing else that may be installed beside them."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("devicecore", "devicecore_factories"):
        package = package_dir(name)
        assert package is not None
        (folder / name).symlink_to(package, target_is_directory=True)
    return folder


@pytest.fixture(scope="session")
def swiftshader() -> dict[str, str]:
    """Return the variables with which a new process finds WebGPU on SwiftShader."""
    folder = Path(sys.prefix, "share", "swiftshader")
    driver = folder / "vk_swiftshader_icd.json"
    if not driver.is_file():
        pytest.skip("SwiftShader is not here: tools/swiftshader.py unpacks it where there is apt")
    return {
        "VK_ICD_FILENAMES": str(driver),
        "LD_LIBRARY_PATH": str(folder),
        "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
    }


@pytest.fixture
def registry() -> KernelRegistry:
    """Return kernels that no other test has."""
    return KernelRegistry()


@pytest.fixture
def device(registry: KernelRegistry) -> Device:
    """Return a plain device with those kernels."""
    return Device("/job:localhost/replica:0/task:0/device:NPU:0", registry=registry)


@pytest.fixture
def factory_registry() -> FactoryRegistry:
    """Return factories of fakes: a CPU, two GPUs, and an NPU that only ONNX Runtime can use."""

    class Host(FakeFactory):  # local ones, which no child process can import to probe
        device_type = "CPU"
        device_class = "CPU"
        frameworks = ("torch", "onnx")

    class Cuda(FakeFactory):
        device_type = "CUDA"
        frameworks = ("torch", "onnx")
        torch_name = "cuda"
        priority = 200
        count = 2

    class Acme(FakeFactory):
        device_type = "Acme"
        device_class = "NPU"
        frameworks = ("onnx",)

    made = FactoryRegistry()
    made.register_class("CPU", Host, 60)
    made.register_class("CUDA", Cuda, 200)
    made.register_class("Acme", Acme, 100)
    return made


@pytest.fixture
def runtime(factory_registry: FactoryRegistry) -> Runtime:
    """Return a runtime of those fakes."""
    return Runtime(factory_registry)
