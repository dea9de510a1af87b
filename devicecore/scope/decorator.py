"""Functions that run inside of a scope: entered for each call, and for each step of a generator.

Between two steps of a coroutine or a generator its caller runs, or another task. The scope is left
there, and so are the blocks inside that are open; all are entered again for the next step. So
nobody else ever sees them.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from functools import cached_property, partial, wraps
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

    from devicecore.scope.generator_steps import Ends

Function = TypeVar("Function")

# What a step may end with so that another one follows. What an asynchronous generator yields is the
# result of an awaitable, which is what is driven.
_NEVER: Ends = frozenset()
_WITHOUT_ERROR: Ends = frozenset({None})
_WITH_A_RESULT: Ends = frozenset({None, StopIteration})


class Decorator(ABC):
    """Something that functions can be decorated with, to run inside of it."""

    __slots__ = ()

    @abstractmethod
    def for_steps(self, goes_on_after: Ends) -> AbstractContextManager[object]:
        """Return what the steps of one call run inside of, each in turn.

        Args:
            goes_on_after: What a step may end with so that another one follows.
        """

    def __call__(self, function: Function) -> Function:
        """Return *function* running inside of this scope.

        Functions, methods, coroutine functions, generator functions and asynchronous ones stay what
        they are, and so do the objects that ``staticmethod``, ``classmethod``, ``property`` and
        ``cached_property`` make. Steps of generators and coroutines run inside; whoever drives them
        does not.

        Raises:
            TypeError: It is a class, or cannot be called.
        """
        return cast("Function", _inside(self, function))


def _inside(scope: Decorator, function: Any) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_inside(scope, function.__func__))
    if isinstance(function, property):
        get, put, delete = (
            part and _inside(scope, part) for part in (function.fget, function.fset, function.fdel)
        )
        return type(function)(get, put, delete, function.__doc__)
    if isinstance(function, cached_property):
        return type(function)(_inside(scope, function.func))
    if inspect.isclass(function) or not callable(function):
        what = "is a class" if inspect.isclass(function) else "cannot be called"
        msg = f"{function!r} {what}; decorate its methods, or a function"
        raise TypeError(msg)
    return _wrapped(scope, function)


def _wrapped(scope: Decorator, function: Callable[..., Any]) -> Any:
    # What inspect looks through, it looks through; any other object is what its __call__ is.
    seen = inspect.isroutine(function) or isinstance(function, partial)
    called = function if seen else type(function).__call__
    if inspect.isasyncgenfunction(called):
        return _asynchronous_generator(scope, function)
    if inspect.iscoroutinefunction(called):
        return _coroutine(scope, function)
    if inspect.isgeneratorfunction(called):
        generator = _generator(scope, function)
        return coroutine(generator) if _is_awaited(called) else generator

    @wraps(function)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with scope.for_steps(_NEVER):
            return function(*args, **kwargs)

    return scoped


def _is_awaited(function: Any) -> bool:
    """Return whether a generator function makes awaitables, as `types.coroutine` lets it."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_ITERABLE_COROUTINE)


def _generator(scope: Decorator, function: Callable[..., Any]) -> Any:
    @wraps(function)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        return (yield from _steps(scope.for_steps(_WITHOUT_ERROR), function(*args, **kwargs)))

    return scoped


def _coroutine(scope: Decorator, function: Callable[..., Any]) -> Any:
    @wraps(function)
    async def scoped(*args: Any, **kwargs: Any) -> Any:
        return await _awaited(scope.for_steps(_WITHOUT_ERROR), function(*args, **kwargs))

    return scoped


def _asynchronous_generator(scope: Decorator, function: Callable[..., Any]) -> Any:
    @wraps(function)
    async def scoped(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inside = scope.for_steps(_WITH_A_RESULT)
        inner = function(*args, **kwargs)
        step = inner.asend(None)
        while True:
            try:
                item = await _awaited(inside, step)
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                await _awaited(inside, inner.aclose())
                raise
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the generator
                step = inner.athrow(error)
            else:
                step = inner.asend(sent)

    return scoped


def _steps(inside: AbstractContextManager[object], inner: Any) -> Generator[Any, Any, Any]:
    """Drive *inner*, a generator or an awaitable, with each step *inside*."""
    step, argument = inner.send, None
    while True:
        try:
            with inside:
                item = step(argument)
        except StopIteration as end:
            return end.value
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt may have come after the step
                with inside:
                    inner.close()
            raise
        try:
            argument = yield item
            step = inner.send
        except GeneratorExit:
            with inside:
                inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the generator
            step, argument = inner.throw, error


# What `_steps` yields goes to the event loop, as if the awaitable had yielded it.
_awaited = coroutine(_steps)
