"""Blocks inside of decorated coroutines and generators: they wait with them, in every framework."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, capture, current_device, device_scope
from devicecore.errors import NotLiveError, ScopeError
from devicecore.runtime import host_cpu
from devicecore.scope import scope_stack
from tests.scope.conftest import in_child, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator

    from tests.scope.conftest import Framework

NPU = Device("/device:NPU:0", device_class="NPU")
OTHER = Device("/device:NPU:1", device_class="NPU")


@pytest.fixture(autouse=True)
def _all_end() -> Iterator[None]:
    yield
    assert scope_stack.suspended == set()
    assert scope_stack.here.scopes.frames == []
    assert current_device() is host_cpu()


# --- in every framework ---------------------------------------------------------------------------


def test_a_block_in_a_coroutine(framework: Framework) -> None:
    @device_scope(framework.of_b)
    async def steps() -> list[str]:
        with device_scope(framework.of_c):
            seen = [framework.where()]
            for _ in range(2):
                await asyncio.sleep(0)
                seen.append(framework.where())
        await asyncio.sleep(0)
        return [*seen, framework.where()]

    async def main() -> tuple[list[str], str]:
        task = asyncio.create_task(steps())
        await asyncio.sleep(0)
        between = framework.where()
        return await task, between

    assert asyncio.run(main()) == ([framework.c] * 3 + [framework.b], framework.a)


def test_a_block_in_a_generator(framework: Framework) -> None:
    @device_scope(framework.of_b)
    def steps() -> Iterator[str]:
        with device_scope(framework.of_c):
            yield framework.where()
            yield framework.where()
        yield framework.where()

    running = steps()
    assert (next(running), framework.where()) == (framework.c, framework.a)
    with device_scope(framework.of_b):
        assert (next(running), framework.where()) == (framework.c, framework.b)
    assert list(running) == [framework.b]


def test_a_block_in_an_async_generator(framework: Framework) -> None:
    @device_scope(framework.of_b)
    async def steps() -> AsyncIterator[str]:
        async with device_scope(framework.of_c):
            yield framework.where()
            await asyncio.sleep(0)
            yield framework.where()
        yield framework.where()

    async def main() -> list[str]:
        seen = []
        async for step in steps():
            seen += [step, framework.where()]
        return seen

    a, b, c = framework.a, framework.b, framework.c
    assert asyncio.run(main()) == [c, a, c, a, b, a]


def test_two_tasks_with_blocks_do_not_disturb_each_other(framework: Framework) -> None:
    @device_scope(framework.of_b)
    async def work(device: Any, turn: asyncio.Event, other: asyncio.Event) -> list[str]:
        seen = []
        with device_scope(device, strict=True):
            for _ in range(3):
                other.set()
                await turn.wait()
                turn.clear()
                seen.append(framework.where())
        other.set()
        return seen

    async def main() -> list[list[str]]:
        one, other = asyncio.Event(), asyncio.Event()
        both = work(framework.of_c, one, other), work(framework.of_b, other, one)
        return list(await asyncio.gather(*both))

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert asyncio.run(main()) == [[framework.c] * 3, [framework.b] * 3]


def test_a_generator_with_a_block_closed_in_another_thread(framework: Framework) -> None:
    seen = []

    @device_scope(framework.of_b)
    def steps() -> Generator[None]:
        with device_scope(framework.of_c):
            try:
                yield
            finally:
                seen.append(framework.where())

    running = steps()
    next(running)
    in_thread(running.close)
    assert seen == [framework.c]


def test_one_decorated_function_in_another(framework: Framework) -> None:
    @device_scope(framework.of_b)
    def inner() -> Iterator[str]:
        with device_scope(framework.of_c):
            yield framework.where()
            yield framework.where()

    @device_scope(framework.of_c)
    def outer() -> Iterator[str]:
        with device_scope(framework.of_b):
            for step in inner():
                yield step
                yield framework.where()

    assert list(outer()) == [framework.c, framework.b] * 2


# --- which device is current ----------------------------------------------------------------------


def test_one_instance_around_the_function_and_inside_of_it() -> None:
    scope = device_scope(NPU)

    @scope
    def steps() -> Iterator[Device]:
        with device_scope(OTHER), scope:
            yield current_device()
            yield current_device()
        yield current_device()

    for step in steps():
        assert step is NPU
        assert current_device() is host_cpu()


def test_a_block_that_another_thread_s_scopes_were_handed_to() -> None:
    with device_scope(NPU), device_scope(OTHER):
        scopes = capture()

    @device_scope("cpu")
    def inside() -> Iterator[Device]:
        with scopes:
            yield current_device()
            yield current_device()

    @scopes
    def around() -> Iterator[Device]:
        with device_scope(NPU):
            yield current_device()
            yield current_device()
        yield current_device()

    assert list(inside()) == [OTHER] * 2
    seen = []
    for step in around():
        seen.append(step)
        assert current_device() is host_cpu()
    assert seen == [NPU, NPU, OTHER]


def test_a_task_made_inside_of_a_block_that_waits_does_not_see_it() -> None:
    async def sees() -> list[Device]:
        seen = [current_device()]
        with device_scope(OTHER):
            seen.append(current_device())
            await asyncio.sleep(0)
            seen.append(current_device())
        return seen

    @device_scope("cpu")
    async def steps() -> list[Device]:
        with device_scope(NPU):
            return await asyncio.create_task(sees())

    assert asyncio.run(steps()) == [host_cpu(), OTHER, OTHER]


def test_a_block_of_a_generator_that_is_left_outside_of_the_step() -> None:
    def plain() -> Generator[Device]:
        with device_scope(OTHER):
            while True:
                yield current_device()

    @device_scope(NPU)
    def steps() -> Generator[Any]:
        held = plain()
        next(held)
        yield held
        yield current_device()

    running = steps()
    held = next(running)
    assert current_device() is host_cpu()
    held.close()
    assert next(running) is NPU
    running.close()


def test_which_of_two_blocks_is_left_outside_of_its_step_cannot_be_told() -> None:
    scope = device_scope(OTHER)

    @device_scope(NPU)
    def steps() -> Generator[Device]:
        with scope:
            yield current_device()
            yield current_device()

    one, other = steps(), steps()
    assert [next(one), next(other)] == [OTHER] * 2
    with pytest.raises(ScopeError, match="where it was not entered"):
        scope.__exit__(None, None, None)
    assert [next(one), next(other)] == [OTHER] * 2
    one.close()
    other.close()


def test_what_a_function_that_ends_has_left_open_stays_open() -> None:
    @device_scope(NPU)
    def enter(stack: ExitStack) -> None:
        stack.enter_context(device_scope(OTHER))

    @device_scope(NPU)
    async def enter_later(stack: AsyncExitStack) -> None:
        await asyncio.sleep(0)
        stack.enter_context(device_scope(OTHER))

    async def main() -> Device:
        async with AsyncExitStack() as stack:
            await enter_later(stack)
            return current_device()

    with ExitStack() as stack:
        enter(stack)
        assert current_device() is OTHER
    assert asyncio.run(main()) is OTHER


def test_a_block_that_cannot_go_on_ends_the_function() -> None:
    pytest.importorskip("torch", reason="torch is not installed here")
    device = Device("/device:NPU:9", torch_device="meta")

    @device_scope(NPU, frameworks=())
    def steps() -> Iterator[Device]:
        with device_scope(OTHER), device_scope("cuda:99", frameworks="torch", fallback=device):
            yield current_device()
            yield current_device()

    running = steps()
    assert next(running) is device
    device.torch_device = "no_longer"
    with pytest.raises(NotLiveError, match="no_longer"):
        next(running)
    assert next(running, None) is None


def test_a_forked_child_goes_on_with_what_waits(in_fork: Callable[..., Any]) -> None:
    @device_scope(NPU)
    def steps() -> Iterator[bool]:
        with device_scope(OTHER):
            yield current_device() is OTHER
            yield current_device() is OTHER
        yield current_device() is NPU

    running = steps()
    assert next(running)
    assert in_fork(lambda: list(running)) == [True, True]
    assert list(running) == [True, True]


def test_a_child_that_is_forked_within_a_step_leaves_its_parent_s_block() -> None:
    """The rest of that step is outside of all scopes; the next one is inside of the function's."""
    code = """
import os
from devicecore import Device, current_device, device_scope
from devicecore.runtime import host_cpu
NPU, OTHER = Device("/device:NPU:0"), Device("/device:NPU:1")
named = {NPU: "npu", OTHER: "other", host_cpu(): "host"}

@device_scope(NPU)
def steps():
    with device_scope(OTHER):
        child = os.fork()
        yield child, named[current_device()]
        yield named[current_device()]
    yield named[current_device()]

running = steps()
child, first = next(running)
seen = [first, named[current_device()], *running, named[current_device()]]
if child == 0:
    os._exit(seen != ["host", "host", "npu", "npu", "host"])
print(json.dumps([os.waitpid(child, 0)[1], *seen]))
"""
    assert in_child(code) == [0, "other", "host", "other", "npu", "host"]
