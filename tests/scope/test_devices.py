"""Which device a scope means: the forms it is given in, absent indices, fallbacks, own hardware."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import (
    Device,
    DeviceName,
    PlaceEnv,
    Registrar,
    current_device,
    default_ledger,
    default_registry,
    device_scope,
    get_default_device,
    set_default_device,
)
from devicecore.errors import (
    DeviceGoneError,
    FallbackForbiddenError,
    InvalidDeviceNameError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.runtime import default_manager, host_cpu
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

torch: Any = pytest.importorskip("torch", reason="torch is not installed here")

NPU = Device("/device:NPU:0", device_class="NPU")
NPU_1 = Device("/device:NPU:1", device_class="NPU")
MOVES = pytest.mark.usefixtures("_clean_ledger")


@pytest.fixture
def _clean_ledger() -> Iterator[None]:
    default_ledger().clear()
    yield
    default_ledger().clear()


def reasons() -> list[tuple[str, str]]:
    return [(move.op, move.source) for move in default_ledger().moves()]


def where() -> str:
    return str(torch.empty(1).device)


# --- forms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    ["cpu", "CPU:0", "/device:CPU:0", DeviceName(device_type="CPU"), torch.device("cpu")],
)
def test_the_host_in_every_form(given: Any) -> None:
    with device_scope(given) as device:
        assert device is host_cpu()


def test_a_device_of_torch() -> None:
    with device_scope(torch.device("meta")) as device:
        assert where() == "meta"
    with device_scope("meta") as again:
        assert again is device


@pytest.mark.parametrize("given", ["cuda:x", "", "gpu 0", "cuda:-1", -1])
def test_nonsense_is_refused_when_the_scope_is_made(given: Any) -> None:
    with pytest.raises(InvalidDeviceNameError):
        device_scope(given)


@pytest.mark.parametrize("given", [None, 1.5, True, object()])
def test_what_names_no_device(given: Any) -> None:
    with pytest.raises(TypeError, match="invalid device"):
        device_scope(given)


def test_an_index_is_that_of_a_gpu() -> None:
    assert repr(device_scope(1)) == "device_scope('/device:GPU:1')"


def test_a_framework_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="no framework is called mxnet; there are cupy, jax"):
        device_scope("cpu", frameworks=["torch", "mxnet"])


def test_a_scope_pickles_with_all_its_options() -> None:
    scope = device_scope("cuda:7", frameworks="torch", fallback="cpu", strict=True)
    copied = pickle.loads(pickle.dumps(scope))
    assert repr(copied) == repr(scope)
    assert copied.__reduce__() == scope.__reduce__()
    assert PlaceEnv is device_scope


def test_without_an_index_it_is_the_one_of_the_scope_around() -> None:
    scope = device_scope("npu")
    with device_scope(NPU_1):
        with device_scope("cpu"), scope as device:
            assert device is NPU_1
        with device_scope(NPU), scope as device:
            assert device is NPU
        with scope as device:
            assert device is NPU_1
    with pytest.raises((UnknownDeviceError, NotLiveError)), scope:
        pytest.fail("entered")


def test_what_an_entry_outside_has_found_does_not_count_inside() -> None:
    scope = device_scope("meta")
    with scope as outside:
        pass
    other = Device("/device:meta:1", torch_device="meta")
    with device_scope(other), scope as device:
        assert device is other
    with device_scope("cpu"), scope as device:
        assert device is outside


def test_a_device_that_is_gone() -> None:
    device = Device("/device:NPU:7")
    scope = device_scope(device)
    with scope:
        pass
    device.close()
    with pytest.raises(DeviceGoneError), scope:
        pytest.fail("entered")


def test_a_process_wide_default() -> None:
    assert get_default_device() is current_device() is host_cpu()
    set_default_device(NPU)
    try:
        assert get_default_device() is current_device() is NPU
        with device_scope("cpu"):
            assert current_device() is host_cpu()
        assert where() == "cpu"  # frameworks follow scopes only
    finally:
        set_default_device(None)
    assert current_device() is host_cpu()
    with pytest.raises(UnknownDeviceError):
        set_default_device("cpu:77")


def test_a_default_in_every_form_that_a_scope_takes() -> None:
    with device_scope("meta") as meta:
        pass
    try:
        for given in ("meta", torch.device("meta"), DeviceName(device_type="meta")):
            set_default_device(given)
            assert current_device() is meta
            set_default_device(None)
        with pytest.raises((UnknownDeviceError, NotLiveError)):
            set_default_device(99)
        with pytest.raises(TypeError, match="invalid device"):
            set_default_device(1.5)
        closed = Device("/device:NPU:8")
        closed.close()
        with pytest.raises(DeviceGoneError):
            set_default_device(closed)
        assert current_device() is host_cpu()
    finally:
        set_default_device(None)


# --- fallback, frameworks, ledger -----------------------------------------------------------------


@MOVES
def test_a_fallback_is_taken_and_told() -> None:
    scope = device_scope("cuda:99", fallback="cpu")
    with scope as device:
        assert device is host_cpu()
    with scope:
        pass
    ((move, count),) = default_ledger().moves().items()
    assert (move.op, move.source, move.target) == (
        "device_scope",
        "/device:CUDA:99",
        host_cpu().name,
    )
    assert count == 2
    with default_ledger().limited_to(0), pytest.raises(FallbackForbiddenError), scope:
        pytest.fail("entered")


@MOVES
def test_a_framework_that_cannot_use_the_device_keeps_its_default_and_the_ledger_says_so() -> None:
    with device_scope(NPU):
        assert where() == "cpu"
        assert current_device() is NPU
    assert reasons() == [("torch", NPU.name)]


@MOVES
def test_a_named_framework_has_to_be_able_to() -> None:
    with (
        pytest.raises(NotLiveError, match="NPU:0 for torch"),
        device_scope(NPU, frameworks="torch"),
    ):
        pytest.fail("entered")
    with device_scope(NPU, frameworks="torch", fallback="meta"):
        assert where() == "meta"
    with device_scope(NPU, frameworks=()), device_scope("meta", frameworks="jax"):
        assert where() == "cpu"
    assert reasons() == [("device_scope", NPU.name)]


@MOVES
def test_a_remote_device_changes_only_what_is_current_and_says_so_on_a_local_call() -> None:
    remote = Device("/job:worker/replica:0/task:3/device:GPU:0", is_local=False)
    with device_scope("meta"), device_scope(remote):
        assert current_device() is remote
        assert reasons() == []
        assert where() == "meta"
        torch.ones(2, device="cpu").add(1)
        assert reasons() == [("torch.empty", remote.name)]
        with default_ledger().limited_to(0), pytest.raises(FallbackForbiddenError):
            torch.zeros(2)
    assert where() == "cpu"
    assert torch.overrides._get_current_function_mode_stack() == []
    with pytest.raises(NotLiveError), device_scope(remote, frameworks="torch"):
        pytest.fail("entered")


def test_a_session_device_places_torch_in_its_memory() -> None:
    session, gpu = Device("/device:NPU:2"), Device("/device:NPU:3", torch_device="meta")
    session.link_memory(gpu)
    with device_scope(session) as device:
        assert device is session
        assert where() == "meta"


def test_a_registered_type_works() -> None:
    class AcmeFactory(FakeFactory):
        device_type = "Acme"
        count = 2
        device_class = "NPU"
        torch_name = "meta"

    scope = device_scope("ACME:0")  # before anybody has registered it
    Registrar("Acme", AcmeFactory)
    try:
        with scope as device:
            assert device.device_type == "Acme"
            assert device in default_manager()
            assert where() == "meta"
    finally:
        for device in default_manager().devices_by_type("Acme"):
            default_manager().remove_devices([device])
        (registration,) = default_registry().factories("Acme")
        default_registry().unregister(registration)
    with pytest.raises(UnknownDeviceError), scope:
        pytest.fail("entered")


def test_torch_cannot_count_so_far() -> None:
    far = Device("/device:NPU:200", torch_device="meta:200")
    with pytest.raises(NotLiveError, match="counts to 127"), device_scope(far, frameworks="torch"):
        pytest.fail("entered")


@MOVES
def test_what_was_refused_is_asked_again_when_a_plug_in_may_have_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device("/device:NPU:5", torch_device="brand_new")
    scope = device_scope(device)
    for _ in range(2):
        with scope:
            assert where() == "cpu"
    assert sum(default_ledger().moves().values()) == 2
    device.torch_device = "meta"
    monkeypatch.setitem(sys.modules, "a_plug_in", sys)
    with scope:
        assert where() == "meta"


def test_a_forked_child_may_leave_the_block_that_its_parent_entered(
    in_fork: Callable[..., Any],
) -> None:
    scope = device_scope("meta")

    def child() -> tuple[bool, str, str]:
        started = current_device() is host_cpu()
        scope.__exit__(None, None, None)
        with scope:
            inside = where()
        return started, inside, where()

    with scope:
        assert in_fork(child) == (True, "meta", "cpu")
        assert where() == "meta"
