"""What can be decorated with a scope, what it stays, and where its body runs."""

from __future__ import annotations

import asyncio
import inspect
import types
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, capture, current_device, device_scope, propagate
from devicecore.errors import ScopeError
from devicecore.runtime import host_cpu
from tests.scope.conftest import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator

    from tests.scope.conftest import Framework

NPU = Device("/device:NPU:0", device_class="NPU")
OTHER = Device("/device:NPU:1", device_class="NPU")
inside = device_scope(NPU)


class Everything:
    """A class with one of each."""

    @inside
    def method(self) -> Device:
        return current_device()

    @inside
    @staticmethod
    def static() -> Device:
        return current_device()

    @staticmethod
    @inside
    def static_of_scoped() -> Device:
        return current_device()

    @inside
    @classmethod
    def of_class(cls) -> tuple[type, Device]:
        return cls, current_device()

    @inside  # type: ignore[prop-decorator]
    @property
    def value(self) -> Device:
        """A value."""
        return current_device()

    @value.setter
    def value(self, seen: list[Device]) -> None:
        seen.append(current_device())

    @inside  # type: ignore[prop-decorator]
    @cached_property
    def kept(self) -> Device:
        return current_device()

    @inside
    async def later(self) -> Device:
        await asyncio.sleep(0)
        return current_device()

    @inside
    def __call__(self) -> Device:
        return current_device()


def test_everything_of_a_class() -> None:
    thing = Everything()
    assert thing.method() is NPU
    assert Everything.static() is Everything.static_of_scoped() is NPU
    assert Everything.of_class() == (Everything, NPU)
    assert thing.value is NPU
    assert inspect.getdoc(Everything.value) == "A value."
    seen: list[Any] = []
    thing.value = seen
    assert seen == [host_cpu()]  # the setter was not decorated
    assert thing.kept is thing.kept is NPU
    assert asyncio.run(thing.later()) is NPU
    assert thing() is NPU
    assert current_device() is host_cpu()


def test_what_a_function_is_stays() -> None:
    @inside
    def plain(x: int, *, y: str = "") -> None:
        """Say something."""

    @inside
    async def coroutine() -> None: ...

    @inside
    def generator() -> Generator[int, None, None]:
        yield 1

    @inside
    async def asynchronous_generator() -> AsyncGenerator[int, None]:
        yield 1

    assert plain.__name__ == "plain"
    assert plain.__doc__ == "Say something."
    assert list(inspect.signature(plain).parameters) == ["x", "y"]
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isgeneratorfunction(generator)
    assert inspect.isasyncgenfunction(asynchronous_generator)


def test_partials_and_objects_that_are_called() -> None:
    class Asynchronous:
        async def __call__(self) -> Device:
            await asyncio.sleep(0)
            return current_device()

    def where(extra: int) -> tuple[Device, int]:
        return current_device(), extra

    async def later(extra: int) -> tuple[Device, int]:
        await asyncio.sleep(0)
        return current_device(), extra

    assert inside(partial(where, 3))() == (NPU, 3)
    assert asyncio.run(inside(partial(later, 3))()) == (NPU, 3)
    assert asyncio.run(inside(Asynchronous())()) is NPU
    assert inside(len)([1, 2]) == 2


@pytest.mark.parametrize("thing", [Everything, 3, "text"])
def test_what_cannot_be_decorated(thing: Any) -> None:
    with pytest.raises(TypeError, match="decorate its methods"):
        inside(thing)


def test_a_context_manager_is_decorated_below() -> None:
    @contextmanager
    @inside
    def below() -> Iterator[Device]:
        yield current_device()

    @inside
    @contextmanager
    def above() -> Iterator[Device]:
        yield current_device()

    for made, device in ((below(), NPU), (above(), host_cpu())):
        with made as seen:
            assert seen is device
            assert current_device() is host_cpu()


def test_a_generator_that_is_awaited_is_awaited() -> None:
    @types.coroutine
    def suspended() -> Generator[None, None, Device]:
        yield
        return current_device()

    async def main() -> list[Device]:
        return [await inside(suspended)(), await inside(partial(suspended))(), current_device()]

    assert asyncio.run(main()) == [NPU, NPU, host_cpu()]


def test_a_generator_is_driven_to_the_last_detail() -> None:
    closed: list[Device] = []

    @inside
    def steps() -> Generator[Any, Any, str]:
        got = yield current_device()
        try:
            yield got, current_device()
        except KeyError as error:
            yield error, current_device()
        try:
            yield None
        except GeneratorExit:
            closed.append(current_device())
            raise
        return "the end"

    running = steps()
    assert next(running) is NPU
    assert current_device() is host_cpu()
    assert running.send("hello") == ("hello", NPU)
    assert str(running.throw(KeyError("oh"))[0]) == "'oh'"
    assert next(running) is None
    with pytest.raises(StopIteration) as end:
        next(running)
    assert end.value.value == "the end"

    running = steps()
    next(running)
    next(running)
    next(running, None)
    running.close()
    assert closed == [NPU]


def test_a_generator_ends_with_its_own_error() -> None:
    @inside
    def steps() -> Generator[int, None, None]:
        yield 1
        raise ZeroDivisionError

    running = steps()
    next(running)
    with pytest.raises(ZeroDivisionError):
        next(running)
    assert current_device() is host_cpu()


def test_an_asynchronous_generator_is_driven_to_the_last_detail() -> None:
    closed: list[Device] = []

    @inside
    async def steps() -> AsyncGenerator[Any, Any]:
        got = yield current_device()
        await asyncio.sleep(0)
        try:
            yield got, current_device()
        except KeyError:
            yield "caught"
        try:
            yield "last"
        finally:
            await asyncio.sleep(0)
            closed.append(current_device())

    async def main() -> None:
        running = steps()
        assert await running.asend(None) is NPU
        assert current_device() is host_cpu()
        assert await running.asend("hello") == ("hello", NPU)
        assert await running.athrow(KeyError()) == "caught"
        assert await anext(running) == "last"
        await running.aclose()
        assert [item async for item in steps()][-1] == "last"

    asyncio.run(main())
    assert closed == [NPU, NPU]


def test_a_cancelled_coroutine_leaves_its_scope() -> None:
    ended: list[Device] = []

    @inside
    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(current_device())

    async def main() -> Device:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return current_device()

    assert asyncio.run(main()) is host_cpu()
    assert ended == [NPU]


def test_scopes_are_handed_to_another_thread() -> None:
    with device_scope(OTHER), device_scope(NPU, frameworks="jax"):
        scopes = capture()
        carried = propagate(current_device)
        assert in_thread(current_device) is host_cpu()

    def entered() -> tuple[Device, Device]:
        with scopes:
            within = current_device()
        return within, current_device()

    assert in_thread(entered) == (NPU, host_cpu())
    assert in_thread(carried) is NPU
    assert repr(scopes) == "<2 captured scopes>"


def test_a_scope_around_that_a_framework_still_follows_is_handed_on(framework: Framework) -> None:
    with device_scope(framework.of_b), device_scope(NPU):
        assert framework.where() == framework.b
        where = propagate(lambda: (framework.where(), current_device()))
    assert in_thread(where) == (framework.b, NPU)


def test_a_strict_scope_stays_strict() -> None:
    with device_scope(NPU, strict=True):
        scopes = capture()

    async def hold() -> None:
        with scopes:
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(hold())
        await asyncio.sleep(0)
        with pytest.raises(ScopeError, match="another task"), device_scope(OTHER):
            pytest.fail("entered")
        await task

    in_thread(lambda: asyncio.run(main()))


def test_nothing_captured_changes_nothing() -> None:
    scopes = capture()
    with device_scope(NPU), scopes:
        assert current_device() is NPU


def test_a_coroutine_is_handed_on_step_by_step() -> None:
    with device_scope(NPU):

        @propagate
        async def later() -> Device:
            await asyncio.sleep(0)
            return current_device()

    async def main() -> tuple[Device, Device]:
        task = asyncio.create_task(later())
        await asyncio.sleep(0)
        between = current_device()
        return await task, between

    assert asyncio.run(main()) == (NPU, host_cpu())
