"""Tasks, generators and forked children, in every framework: where things land, and afterwards."""

from __future__ import annotations

import asyncio
import linecache
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, capture, current_device, device_scope
from devicecore.errors import ScopeError
from devicecore.runtime import host_cpu
from devicecore.scope import scope as scope_module
from tests.scope.conftest import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from tests.scope.conftest import Framework


NPU = Device("/device:NPU:0", device_class="NPU")


def _warn_again_now() -> None:
    scope_module._warned.clear()


@pytest.fixture(autouse=True)
def _warn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_module, "_warned", set())


# --- tasks ----------------------------------------------------------------------------------------


def test_tasks_that_interleave_in_decorated_coroutines(framework: Framework) -> None:
    seen: list[str] = []

    async def main() -> None:
        turn = [asyncio.Event() for _ in range(3)]

        @device_scope(framework.of_b)
        async def one() -> None:
            turn[0].set()
            await turn[1].wait()
            seen.append(framework.where())
            turn[2].set()

        @device_scope(framework.of_c)
        async def other() -> None:
            await turn[0].wait()
            turn[1].set()
            await turn[2].wait()
            seen.append(framework.where())

        async def sibling() -> None:
            await turn[0].wait()
            seen.append(framework.where())

        await asyncio.gather(one(), other(), sibling())

    asyncio.run(main())
    assert sorted(seen) == sorted([framework.a, framework.b, framework.c])


def held_across_awaits(one: device_scope, other: device_scope) -> list[bool]:
    """Let two tasks hold plain blocks; return whether the right device was current in them."""
    seen: list[bool] = []

    async def main() -> None:
        inside, done = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            with one as device:
                inside.set()
                await done.wait()
                seen.append(current_device() is device)

        async def second() -> None:
            await inside.wait()
            try:
                with other as device:
                    done.set()
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    seen.append(current_device() is device)
            finally:
                done.set()

        await asyncio.gather(first(), second())

    asyncio.run(main())
    return seen


@pytest.mark.parametrize("same", [False, True], ids=["two", "one"])
def test_plain_blocks_of_two_tasks_warn_once_and_end_where_they_began(
    framework: Framework, same: bool
) -> None:
    """Of one device too: the task that leaves first goes on inside the other one's block."""
    devices = framework.of_b, framework.of_b if same else framework.of_c
    with pytest.warns(RuntimeWarning, match="decorate") as caught:
        seen = [held_across_awaits(*map(device_scope, devices)) for _ in range(2)]
    assert seen == [[True, True]] * 2
    (warning,) = [each for each in caught if each.category is RuntimeWarning]
    assert warning.filename == __file__
    assert framework.where() == framework.a


@pytest.mark.parametrize("strict", [(True, False), (False, True)], ids=["first", "second"])
def test_plain_blocks_of_two_tasks_are_refused_in_strict_mode(
    framework: Framework, strict: tuple[bool, bool]
) -> None:
    one = device_scope(framework.of_b, strict=strict[0])
    other = device_scope(framework.of_c, strict=strict[1])
    with pytest.raises(ScopeError, match="decorate"):
        held_across_awaits(one, other)
    assert framework.where() == framework.a


async def enter_with(scope: device_scope) -> None:
    with scope:
        pass


async def enter_async_with(scope: device_scope) -> None:
    async with scope:
        pass


async def enter_stack(scope: device_scope) -> None:
    with ExitStack() as stack:
        stack.enter_context(scope)


async def enter_captured(scope: device_scope) -> None:
    with scope:
        scopes = capture()
    _warn_again_now()
    with scopes:
        pass


@pytest.mark.parametrize(
    ("enter", "line"),
    [
        (enter_with, "    with scope:"),
        (enter_async_with, "    async with scope:"),
        (enter_stack, "        stack.enter_context(scope)"),
        (enter_captured, "    with scopes:"),
    ],
)
def test_the_warning_shows_the_block(
    enter: Callable[[device_scope], Coroutine[Any, Any, None]], line: str
) -> None:
    async def main() -> None:
        async def hold() -> None:
            with device_scope(NPU):
                await asyncio.sleep(0)

        task = asyncio.create_task(hold())
        await asyncio.sleep(0)
        await enter(device_scope("cpu"))
        await task

    with pytest.warns(RuntimeWarning, match="decorate") as caught:
        asyncio.run(main())
    assert linecache.getline(__file__, caught[-1].lineno).rstrip() == line


def test_a_task_made_inside_that_runs_after_the_end(framework: Framework) -> None:
    async def where() -> tuple[str, bool]:
        return framework.where(), current_device() is host_cpu()

    async def main() -> tuple[str, bool]:
        with device_scope(framework.of_b):
            task = asyncio.create_task(where())
        return await task

    assert asyncio.run(main()) == (framework.a, True)


def test_executors_start_outside(framework: Framework) -> None:
    async def main() -> tuple[str, bool]:
        with device_scope(framework.of_b):
            return await asyncio.to_thread(
                lambda: (framework.where(), current_device() is host_cpu())
            )

    expected = framework.b if framework.is_process_wide else framework.a
    assert asyncio.run(main()) == (expected, True)


def test_an_async_block(framework: Framework) -> None:
    async def main() -> str:
        async with device_scope(framework.of_b):
            return framework.where()

    assert asyncio.run(main()) == framework.b


# --- generators -----------------------------------------------------------------------------------


def plain_steps(framework: Framework, device: Any) -> Iterator[str]:
    with device_scope(device):
        while True:
            yield framework.where()


def test_a_suspended_decorated_generator_leaves_its_caller_alone(framework: Framework) -> None:
    @device_scope(framework.of_b)
    def steps() -> Iterator[str]:
        yield framework.where()
        yield framework.where()

    running = steps()
    assert next(running) == framework.b
    assert framework.where() == framework.a
    with device_scope(framework.of_c):
        assert next(running) == framework.b
        assert framework.where() == framework.c
    assert next(running, None) is None


def test_two_generators_closed_in_the_order_they_were_made(framework: Framework) -> None:
    one, other = plain_steps(framework, framework.of_b), plain_steps(framework, framework.of_c)
    assert next(one) == framework.b
    assert next(other) == framework.c
    one.close()  # type: ignore[attr-defined]
    assert framework.where() == framework.c
    other.close()  # type: ignore[attr-defined]
    assert framework.where() == framework.a
    assert current_device() is host_cpu()


def test_a_decorated_generator_closed_in_another_thread(framework: Framework) -> None:
    ended = []

    @device_scope(framework.of_b)
    def steps() -> Iterator[str]:
        try:
            yield framework.where()
        finally:
            ended.append(framework.where())

    running = steps()
    assert next(running) == framework.b
    in_thread(running.close)  # type: ignore[attr-defined]
    assert ended == [framework.b]


def test_a_block_left_in_another_thread_is_refused(framework: Framework) -> None:
    """The thread that entered keeps its device: nothing is set anywhere behind its back."""

    def owner() -> tuple[str, str]:
        scope = device_scope(framework.of_b)
        scope.__enter__()
        refused = in_thread(lambda: left(scope))
        inside = framework.where()
        scope.__exit__(None, None, None)
        return refused, inside

    def left(scope: device_scope) -> str:
        try:
            scope.__exit__(None, None, None)
        except ScopeError as error:
            return str(error)
        return ""

    refused, inside = in_thread(owner)
    assert "where it was not entered" in refused
    assert inside == framework.b


def test_an_async_generator_is_entered_at_every_step(framework: Framework) -> None:
    @device_scope(framework.of_b)
    async def steps() -> AsyncIterator[str]:
        for _ in range(2):
            await asyncio.sleep(0)
            yield framework.where()

    async def main() -> list[str]:
        seen = []
        async for step in steps():
            seen += [step, framework.where()]
        return seen

    assert asyncio.run(main()) == [framework.b, framework.a] * 2


def test_recursion(framework: Framework) -> None:
    @device_scope(framework.of_b)
    def down(depth: int) -> list[str]:
        return [framework.where(), *(down(depth - 1) if depth else [])]

    assert down(5) == [framework.b] * 6


# --- forks ----------------------------------------------------------------------------------------


def test_a_forked_child_starts_outside(framework: Framework, in_fork: Callable[..., Any]) -> None:
    if framework.name in {"jax", "tensorflow"}:
        pytest.skip(f"{framework.name} does not work in a forked child")
    with device_scope(framework.of_b):
        assert in_fork(lambda: (framework.where(), current_device() is host_cpu())) == (
            framework.a,
            True,
        )
        assert framework.where() == framework.b
