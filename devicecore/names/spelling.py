"""Names as people type them: registered types count in any case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.errors import InvalidDeviceNameError
from devicecore.names.device_name import DeviceName

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORT = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?::([0-9]{1,9}))?")


def spelled(text: str, types: Iterable[str]) -> DeviceName:
    """Return the name that *text* writes, where it may also name one of *types* in any case.

    Args:
        text: Such as ``"acme:1"``, or anything that `DeviceName.parse` takes.
        types: The types that are known here, beside those that every devicecore knows.

    Raises:
        InvalidDeviceNameError: It writes no name.
    """
    if not isinstance(text, str):
        raise InvalidDeviceNameError(repr(text), 0, "a name is a str")
    if found := _SHORT.fullmatch(text):
        folded = found[1].casefold()
        for known in types:
            if known.casefold() == folded:
                index = None if found[2] is None else int(found[2])
                return DeviceName(device_type=known, index=index)
    return DeviceName.parse(text)
