"""Classes of frameworks that somebody else has imported; nothing is imported for them."""

from __future__ import annotations

import sys
from typing import Any


class _Nothing:
    """What no value is an instance of."""


def class_in(module: str, name: str) -> Any:
    """Return a class of a module that is loaded, or one that nothing is an instance of."""
    # A module that is being imported lacks names.
    found = getattr(sys.modules.get(module), name, _Nothing)
    return found if isinstance(found, type) else _Nothing
