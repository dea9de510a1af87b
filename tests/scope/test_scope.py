"""The current device: of a block, a function, a coroutine; never of another thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from devicecore import Device, current_device, device_scope
from devicecore.errors import InvalidDeviceNameError, NotLiveError
from devicecore.runtime import host_cpu

NPU = Device("/device:NPU:0")
OTHER = Device("/device:NPU:1")


def test_scopes_nest_and_end() -> None:
    assert current_device() is host_cpu()
    with device_scope(NPU) as entered:
        assert entered is NPU
        assert current_device() is NPU
        with device_scope(OTHER):
            assert current_device() is OTHER
        assert current_device() is NPU
    assert current_device() is host_cpu()


def test_a_scope_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), device_scope(NPU):
        _ = 1 / 0
    assert current_device() is host_cpu()


def test_one_scope_serves_again_and_inside_itself() -> None:
    scope = device_scope(NPU)
    with scope, scope:
        assert current_device() is NPU
    assert current_device() is host_cpu()
    with scope:
        assert current_device() is NPU


def test_functions_and_coroutines() -> None:
    @device_scope(NPU)
    def where(extra: int) -> tuple[Device, int]:
        return current_device(), extra

    @device_scope(OTHER)
    async def where_later() -> Device:
        await asyncio.sleep(0)
        return current_device()

    assert where(3) == (NPU, 3)
    assert where.__name__ == "where"

    async def both() -> list[Device]:
        return [await where_later(), await asyncio.to_thread(current_device)]

    assert asyncio.run(both()) == [OTHER, host_cpu()]


def test_what_cannot_be_decorated() -> None:
    with pytest.raises(TypeError, match="class"):
        device_scope(NPU)(Device)
    with pytest.raises(TypeError, match="called"):
        device_scope(NPU)(3)


def test_threads_do_not_inherit() -> None:
    seen = []
    with device_scope(NPU):
        thread = threading.Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join()
    assert seen == [host_cpu()]


def test_syntax_when_made_and_liveness_when_entered() -> None:
    with pytest.raises(InvalidDeviceNameError):
        device_scope("cuda:x")
    scope = device_scope("mps:0")  # made on any machine
    assert "MPS" in repr(scope)


@pytest.mark.skipif("sys.platform == 'darwin'", reason="MPS may be live here")
def test_a_dead_device_is_refused_at_entry() -> None:
    with pytest.raises(NotLiveError, match="MPS"), device_scope("mps"):
        pytest.fail("entered")
    assert current_device() is host_cpu()
