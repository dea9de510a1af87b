"""Gives a wrapper the original's name, signature, documentation and methods."""

from __future__ import annotations

import inspect
from functools import update_wrapper
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# What calling it does, as inspect tells it, and event loops and test runners go by.
_KINDS: Final[dict[str, Callable[[Any], bool]]] = {
    "a coroutine function": inspect.iscoroutinefunction,
    "a generator function": inspect.isgeneratorfunction,
    "an asynchronous generator function": inspect.isasyncgenfunction,
}
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
_METHODS: Final = (staticmethod, classmethod)


def wraps(wrapper: Any, original: Any, address: tuple[str, str]) -> None:
    """Make *wrapper* look like *original*: names, documentation, attributes, methods, signature.

    It is pickled by its name, so it loads as the original where that is not patched.

    Args:
        wrapper: A function with any parameters, made for this.
        original: What it stands in for.
        address: The module and the qualified name that lead to the original, and soon to it.

    Raises:
        TypeError: The wrapper is not a function of the same kind, such as a coroutine function.
    """
    if type(wrapper) is not FunctionType:
        msg = f"the wrapper of {'.'.join(address)} is {wrapper!r}; it has to be a function"
        raise TypeError(msg)
    if kind_of(wrapper) != kind_of(original):
        msg = f"the wrapper of {'.'.join(address)} is {kind_of(wrapper)}, but that is "
        raise TypeError(msg + kind_of(original))
    update_wrapper(wrapper, original)
    wrapper.__module__, wrapper.__qualname__ = address
    wrapper.__name__ = address[1].rpartition(".")[2]
    for name in _methods_of(original).keys() - dir(wrapper):
        setattr(wrapper, name, getattr(original, name))
    if not isinstance(original, FunctionType):
        # Of a function inspect reads the signature itself, through __wrapped__.
        try:
            wrapper.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        except (TypeError, ValueError):  # C code that does not say; it does not of the original
            return


def _methods_of(original: Any) -> dict[str, Any]:
    """Return the public methods of an object that is called, such as ``cache_clear`` of a cache."""
    if isinstance(original, _FUNCTIONS):
        return {}
    bases = type(original).__mro__[-2::-1]  # without object
    members = {name: value for base in bases for name, value in vars(base).items()}
    return {
        name: value
        for name, value in members.items()
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, _METHODS))
    }


def kind_of(function: Any) -> str:
    """Return what calling *function* gives, in words."""
    found = (kind for kind, fits in _KINDS.items() if fits(function))
    return next(found, "a plain function")
