"""Frameworks that somebody else has imported, told from a program's own modules of their names."""

from __future__ import annotations

import sys
from typing import Any, Final

# What each brings in whenever it is imported, and what no module of a program has by chance.
_INSIDE: Final = {
    "jax": "jax._src",
    "paddle": "paddle.framework",
    "tensorflow": "tensorflow.python",
    "torch": "torch._C",
}


def loaded(name: str) -> Any:
    """Return the framework of that name if it is imported, else None; nothing is imported.

    A program may have a file ``torch.py`` of its own, which is asked for nothing.

    Args:
        name: ``"jax"``, ``"paddle"``, ``"tensorflow"`` or ``"torch"``.

    Examples:
        >>> loaded("paddle") is None
        True
    """
    modules = sys.modules
    return modules.get(name) if modules.get(_INSIDE[name]) is not None else None


def class_in(module: str, name: str) -> Any:
    """Return a class of a module that is imported, or one that nothing is an instance of.

    A module that is being imported lacks names, and one of the program may answer for any name.
    """
    inside = _INSIDE.get(module)
    if inside is not None and sys.modules.get(inside) is None:
        return Nothing
    try:
        found = getattr(sys.modules.get(module), name, Nothing)
    except Exception:  # noqa: BLE001 - a program's own module, which makes its names when asked
        return Nothing
    return found if isinstance(found, type) else Nothing


class Nothing:
    """What no value is an instance of."""
