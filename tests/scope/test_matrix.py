"""Every situation that a scope gets into, in every framework: where things land, and afterwards."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import current_device, device_scope
from devicecore.errors import ScopeError
from devicecore.runtime import host_cpu
from tests.scope.conftest import HERE, KINDS, in_thread

if TYPE_CHECKING:
    from tests.scope.conftest import Framework


@pytest.mark.parametrize("name", sorted(set(KINDS) - set(HERE)))
def test_the_other_frameworks(name: str) -> None:
    pytest.skip(f"{name} is not installed here; `make test-frameworks` runs this file with it")


# --- blocks ---------------------------------------------------------------------------------------


def test_nested_and_back_after_an_error(framework: Framework) -> None:
    with device_scope(framework.of_b):
        assert framework.where() == framework.b
        with pytest.raises(ZeroDivisionError), device_scope(framework.of_c):
            _ = 1 // (framework.where() != framework.c)
        assert framework.where() == framework.b


def test_a_block_gives_the_device(framework: Framework) -> None:
    with device_scope(framework.of_b) as device:
        assert device is current_device()
        assert device is not host_cpu()


def test_an_instance_nested_in_itself(framework: Framework) -> None:
    scope = device_scope(framework.of_b)
    with scope:
        with scope:
            assert framework.where() == framework.b
        assert framework.where() == framework.b


def test_an_instance_around_another_scope(framework: Framework) -> None:
    scope = device_scope(framework.of_b)
    with scope:
        with device_scope(framework.of_c), scope:
            assert framework.where() == framework.b
        assert framework.where() == framework.b


def test_what_is_set_inside_ends_with_its_scope_and_survives_another(framework: Framework) -> None:
    with device_scope(framework.of_b):
        if not framework.set_c():
            pytest.skip(f"{framework.name} has no function that sets a default for good")
        now = framework.where()
        with device_scope(framework.of_b):
            assert framework.where() == framework.b
        assert framework.where() == now
    assert framework.where() == framework.a


def test_what_is_set_outside_is_found_again(framework: Framework) -> None:
    if not framework.set_c():
        pytest.skip(f"{framework.name} has no function that sets a default for good")
    try:
        with device_scope(framework.of_b):
            assert framework.where() == framework.b
        assert framework.where() == framework.c
    finally:
        reset(framework)


def reset(framework: Any) -> None:
    if framework.name == "torch":
        framework.torch.set_default_device(None)
    elif framework.name == "jax":
        framework.jax.config.update("jax_default_device", None)
    else:
        framework.paddle.device.set_device(framework.a)


# --- threads --------------------------------------------------------------------------------------


def test_a_thread_started_inside_starts_outside(framework: Framework) -> None:
    with device_scope(framework.of_b):
        assert in_thread(current_device) is host_cpu()
        # No code from outside can give Paddle's threads a device each.
        expected = framework.b if framework.is_process_wide else framework.a
        assert in_thread(framework.where) == expected


def test_another_thread_is_not_seen(framework: Framework) -> None:
    entered, seen = threading.Event(), threading.Event()

    def hold() -> str:
        with device_scope(framework.of_b):
            entered.set()
            seen.wait(60)
            return framework.where()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        entered.wait(60)
        expected = framework.b if framework.is_process_wide else framework.a
        assert framework.where() == expected
        assert current_device() is host_cpu()
        seen.set()
        assert held.result(60) == framework.b


def test_two_threads_that_overlap(framework: Framework) -> None:
    """The first one leaves first; where there is one device for all, the second one is refused."""
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))

    def first() -> list[str]:
        with device_scope(framework.of_b):
            first_is_in.set()
            second_is_in.wait(60)
            inside = framework.where()
        first_is_out.set()
        return [inside]

    def second() -> list[str]:
        first_is_in.wait(60)
        try:
            with device_scope(framework.of_c):
                second_is_in.set()
                first_is_out.wait(60)
                inside = framework.where()
        finally:
            second_is_in.set()
            first_is_out.wait(60)
        return [inside, framework.where()]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(first), pool.submit(second)
        assert one.result(60) == [framework.b]
        if framework.is_process_wide:
            with pytest.raises(ScopeError, match="another thread"):
                other.result(60)
        else:
            assert other.result(60) == [framework.c, framework.a]


def test_two_threads_on_the_same_device(framework: Framework) -> None:
    meet = threading.Barrier(2, timeout=60)

    def work(leave_first: bool) -> tuple[str, str]:
        with device_scope(framework.of_b):
            meet.wait()
            before = framework.where()
            if not leave_first:
                meet.wait()
            after = framework.where()
        if leave_first:
            meet.wait()
        return before, after

    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(work, (True, False)):
            assert result == (framework.b, framework.b)


def test_an_instance_in_two_threads_with_different_scopes_around(framework: Framework) -> None:
    scope = device_scope(framework.of_b)
    turns = threading.Lock()  # one device for all of Paddle: one after the other

    def inside(outer: Any, landing: str) -> bool:
        with device_scope(outer):
            with scope:
                right = framework.where() == framework.b
            return right and framework.where() == landing

    def work(outer: Any, landing: str) -> bool:
        if not framework.is_process_wide:
            return inside(outer, landing)
        with turns:
            return inside(outer, landing)

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(work, framework.of_c, framework.c)
        other = pool.submit(work, framework.of_b, framework.b)
        assert one.result(60)
        assert other.result(60)


# --- devices that are not there -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nonsense", "nonsense:0", "cuda:99", "cuda:256", "cpu:77"])
def test_an_unknown_device_is_refused_at_entry_and_changes_nothing(
    framework: Framework, name: str
) -> None:
    scope = device_scope(name)
    with pytest.raises((LookupError, RuntimeError)), scope:
        pytest.fail("entered")
    with device_scope(framework.of_b), pytest.raises((LookupError, RuntimeError)), scope:
        pytest.fail("entered")
    assert framework.where() == framework.a


def test_a_failed_entry_does_not_spoil_the_next(framework: Framework) -> None:
    for _ in range(2):
        with pytest.raises((LookupError, RuntimeError)), device_scope("cuda:99"):
            pytest.fail("entered")
        with device_scope(framework.of_b):
            assert framework.where() == framework.b
