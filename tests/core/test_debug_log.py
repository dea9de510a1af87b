"""At DEBUG the log says how a choice was made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry
from devicecore.device_mgr import DeviceMgr
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.liveness import Liveness
from devicecore.resolution import resolve
from devicecore.runtime import Runtime
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Host(FakeFactory):
    device_type = "CPU"
    priority = 60
    device_class = "CPU"


class Unplugged(FakeFactory):
    device_type = "NPU"
    priority = 200
    answer = Liveness("absent", reason="none is plugged in")


def test_it_says_what_was_found_and_taken_and_passed_over(
    cache_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "devicecore")
    registry = FactoryRegistry()
    for factory in (Host, Unplugged):
        registry.register_class(factory.device_type, factory)
    resolve(runtime=Runtime(registry))
    registry.get_factory("CPU")
    assert "is absent (metadata): none is plugged in" in caplog.text
    assert "CPU for None: takes" in caplog.text
    assert "passed over: NPU: absent, none is plugged in" in caplog.text


def test_it_says_which_device_takes_a_call(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "devicecore")
    kernels = KernelRegistry()
    kernels.register(Kernel("a.b", lambda _: 1, device_type="CPU"))
    cpu, npu = (Device(f"/device:{name}:0", registry=kernels) for name in ("CPU", "NPU"))
    DeviceMgr([cpu, npu]).compute("a.b")
    assert f"a.b under 'auto': {cpu.name}; passed over: {npu.name}: it is for CPU" in caplog.text
