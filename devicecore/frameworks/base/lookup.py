"""Frameworks by the names of their modules, and those that somebody else has imported."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.frameworks.base.framework import Framework
    from devicecore.names import DeviceName

_FOLDER = "devicecore.frameworks"


@cache
def known_frameworks() -> frozenset[str]:
    """Return the modules of all frameworks that devicecore knows."""
    folder = sys.modules[_FOLDER].__path__
    return frozenset(module.name for module in iter_modules(folder) if not module.ispkg)


@cache
def framework(module: str) -> Framework:
    """Return what devicecore knows of a framework; the framework itself is not imported.

    Args:
        module: One of `known_frameworks`.
    """
    found: Framework = import_module(f"{_FOLDER}.{module}").FRAMEWORK
    return found


@cache
def _marker(module: str) -> str:
    return framework(module).marker if module in known_frameworks() else ""


def loaded(module: str) -> Any:
    """Return the framework of that name if it is imported, else None; nothing is imported.

    A program may have a file ``torch.py`` of its own, which is asked for nothing.

    Args:
        module: Such as ``"jax"`` or ``"torch"``.

    Examples:
        >>> loaded("paddle") is None
        True
    """
    modules = sys.modules
    marker = _marker(module)
    return None if marker and modules.get(marker) is None else modules.get(module)


def class_in(module: str, name: str) -> Any:
    """Return a class of a module that is imported, or one that nothing is an instance of.

    A module that is being imported lacks names, and one of the program may answer for any name.
    """
    try:
        found = getattr(loaded(module), name, Nothing)
    except Exception:  # noqa: BLE001 - a program's own module, which makes its names when asked
        return Nothing
    return found if isinstance(found, type) else Nothing


class Nothing:
    """What no value is an instance of."""


def framework_of_arrays(kind: type) -> Framework | None:
    """Return the framework whose arrays a class is for, if it is imported."""
    for module in known_frameworks() & sys.modules.keys():
        known = framework(module)
        if issubclass(kind, class_in(module, known.array)):
            return known
    return None


def name_of_device(given: object) -> str | DeviceName | None:
    """Return the name of the device that an object of a framework means, or None for other objects.

    Args:
        given: A ``torch.device``, a ``jax.Device``, a ``tf.config.LogicalDevice`` or
            ``PhysicalDevice``, a ``tf.DeviceSpec``, Paddle's ``Place`` or a ``cupy.cuda.Device``.

    Returns:
        A text, where registered types may still have their say in it, or a name.

    Raises:
        InvalidDeviceNameError: It is the place of no device.
    """
    kind = type(given)
    module = kind.__module__.partition(".")[0].removesuffix("lib")  # JAX's are of jaxlib
    if module not in known_frameworks():
        return None
    return framework(module).name_of_device(given, kind.__name__)


@cache
def frameworks_with_default() -> frozenset[str]:
    """Return the frameworks whose default device follows a scope, by their modules."""
    return frozenset(module for module in known_frameworks() if framework(module).uses)


def checked_frameworks(words: Iterable[str]) -> frozenset[str]:
    """Return the frameworks with a default device that *words* name in any case.

    Examples:
        >>> sorted(checked_frameworks(["PyTorch", "JAX", "tf"]))
        ['jax', 'tensorflow', 'torch']

    Raises:
        ValueError: One names none; says which is near.
    """
    known = {
        word: module
        for module in frameworks_with_default()
        for word in (module, *framework(module).words)
    }
    given = [str(word) for word in words]
    if unknown := sorted({word for word in given if word.casefold() not in known}):
        near = get_close_matches(unknown[0].casefold(), known, n=1)
        hint = f"; did you mean {known[near[0]]!r}?" if near else ""
        there = ", ".join(sorted(set(known.values())))
        msg = f"no framework is called {', '.join(unknown)}; there are {there}{hint}"
        raise ValueError(msg)
    return frozenset(known[word.casefold()] for word in given)
