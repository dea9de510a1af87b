"""The folders and archives that ``sys.path`` names, whatever programs put there."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def search_path() -> list[str]:
    """Return the entries of ``sys.path`` as text; what names no place is left out, as by imports.

    Programs put paths and bytes there as well.
    """
    places = []
    for entry in list(sys.path):
        with suppress(TypeError):  # it is no path
            places.append(os.fsdecode(entry))
    return places
