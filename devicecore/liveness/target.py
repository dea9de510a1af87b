"""What a text such as ``"module:Class"`` names, in this process or in the one that probes."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any


def resolve(target: str) -> Any:
    """Return what *target* names, as ``"module:qualified.name"``.

    Raises:
        ValueError: *target* is not written like this.
        ImportError: The module cannot be imported.
        AttributeError: It has no such name.
    """
    module, _, name = target.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        msg = f"{target!r} names no class; an entry point says it as module:Class"
        raise ValueError(msg)
    return attrgetter(name)(import_module(module))
