"""What an entry has found is used by the next one, as long as looking again would find the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, DeviceName, Registrar, default_registry, device_scope
from devicecore.device_mgr import LOCAL_TASK
from devicecore.errors import DeviceGoneError, NotLiveError
from devicecore.frameworks.base.adapter import Adapter
from devicecore.liveness import Liveness
from devicecore.runtime import default_manager
from devicecore.scope import device_lookup
from devicecore.scope.device_lookup import is_still_true, look
from devicecore.scope.scope_stack import OUTSIDE
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Iterator


class Acme(FakeFactory):
    device_type = "Acme"
    device_class = "NPU"
    count = 2


class Better(FakeFactory):
    device_type = "Better"
    device_class = "NPU"
    priority = 1000


@pytest.fixture
def registered() -> Iterator[list[Registrar]]:
    made = [Registrar("Acme", Acme)]
    yield made
    for each in made:
        each.unregister()
    for kind in ("Acme", "Better"):
        default_manager().remove_devices(default_manager().devices_by_type(kind))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", ["npu", "npu:1", "acme", "acme:1", "cpu", "meta"])
def test_nothing_is_looked_for_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "meta":
        pytest.importorskip("torch", reason="torch is not installed here")
    scope = device_scope(name)
    with scope as first:
        pass
    monkeypatch.setattr(device_lookup, "find", lambda *_: pytest.fail("looked again"))
    for again in (scope, device_scope(name)):
        with again as device:
            assert device is first


def test_a_better_device_of_a_class_is_found_as_soon_as_it_is_there(
    registered: list[Registrar],
) -> None:
    scope = device_scope("npu")
    with scope as device:
        assert device.device_type == "Acme"
    registered.append(Registrar("Better", Better))
    with scope as device, device_scope("npu") as again:
        assert device is again
        assert device.device_type == "Better"
    default_manager().remove_devices([device])
    registered.pop().unregister()
    with scope as device:
        assert device.device_type == "Acme"


def test_a_better_device_that_is_there_after_a_new_probe(
    registered: list[Registrar],
) -> None:
    class Late(Better):
        answer: Liveness | None = Liveness("absent", reason="nobody is at home")

    late = Registrar("Better", Late)
    registered.append(late)
    scope = device_scope("npu")
    with scope as device:
        assert device.device_type == "Acme"
    Late.answer = None
    assert late.registration is not None
    default_registry().doubt(late.registration, NotLiveError("Better", "absent", "it was"))
    with scope as device:
        assert device.device_type == "Better"


@pytest.mark.usefixtures("registered")
def test_inside_of_a_scope_of_the_class_it_is_the_device_of_that() -> None:
    scope = device_scope("npu")
    with scope as outside, device_scope("acme:1") as inner:
        assert outside is not inner
        with scope as device:
            assert device is inner
        with device_scope("cpu"), scope as device:
            assert device is inner
    with scope as device:
        assert device is outside


@pytest.mark.usefixtures("registered")
def test_a_device_that_is_closed_is_not_found_again() -> None:
    scope = device_scope("npu:0")
    with scope as device:
        pass
    device.close()
    for again in (scope, device_scope("npu:0"), device_scope("acme:0")):
        with pytest.raises(DeviceGoneError), again:
            pytest.fail("entered")


class Gpus(Adapter):
    """A fake framework that has some GPU current."""

    title = "GPUs"
    frameworks = frozenset({"GPUs"})
    now = 0

    def place_of(self, device: Device) -> Any:
        return None

    def save(self, place: Any) -> Any:
        pytest.fail("saved")

    def set(self, place: Any, saved: Any) -> None:
        pytest.fail("set")

    def leave(self, saved: Any) -> None:
        pytest.fail("left")

    def join(self, upper: Any, lower: Any) -> Any:
        pytest.fail("joined")

    def current_index(self, device_type: str) -> int | None:
        return self.now if device_type == "ROCM" else None


def test_another_gpu_that_is_made_current_is_found() -> None:
    """By the name of its type, and by the class of a session's device that computes on it."""
    gpus = [Device(f"{LOCAL_TASK}/device:ROCM:{index}", device_class="GPU") for index in range(2)]
    sessions = [Device(f"{LOCAL_TASK}/device:SOME:{index}", device_class="NPU") for index in (0, 1)]
    for session, gpu in zip(sessions, gpus, strict=True):
        session.link_memory(gpu)
    default_manager().add_devices([*gpus, *sessions])
    try:
        for kind, devices in (("ROCM", gpus), ("NPU", sessions)):
            name, framework = DeviceName(device_type=kind), Gpus()
            now = (framework,)
            first = look(name, None, OUTSIDE, now)
            assert first.device is devices[0]
            assert is_still_true(first, OUTSIDE, now)
            framework.now = 1
            assert not is_still_true(first, OUTSIDE, now)
            assert look(name, None, OUTSIDE, now).device is devices[1]
    finally:
        default_manager().remove_devices([*sessions, *gpus])


@pytest.mark.usefixtures("registered")
def test_only_so_many_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lookup, "_known", {})
    monkeypatch.setattr(device_lookup, "_MOST", 2)
    for name in ("acme:0", "acme:1", "cpu", "acme:0"):
        with device_scope(name):
            pass
        assert 1 <= len(device_lookup._known) <= 2
