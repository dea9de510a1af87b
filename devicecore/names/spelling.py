"""Names as people type them: registered types count in any case."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from devicecore.errors import InvalidDeviceNameError
from devicecore.names.device_name import DeviceName
from devicecore.names.grammar import WORD
from devicecore.names.types import known_type
from devicecore.names.words import VENDOR_TYPES, near_types, why_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SHORT = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?::([0-9]{1,9}))?")
_ONE_DEVICE = re.compile(r"(?:.*/device:)?([A-Za-z][A-Za-z0-9_]*):")


def spelled(given: object, types: Iterable[str]) -> DeviceName:
    """Return the name that *given* means, where it may also name one of *types* in any case.

    Args:
        given: A text such as ``"acme:1"``, or anything that `DeviceName.parse` takes; a
            `DeviceName`; the index of a GPU; the object that a framework has for a device, such as
            a ``torch.device``.
        types: The types that are known here, beside those that every devicecore knows.

    Raises:
        InvalidDeviceNameError: It means no device.
    """
    text = meant_by(given)
    if isinstance(text, DeviceName):
        return text
    if text is None:
        raise InvalidDeviceNameError(repr(given), 0, "a name is a str")
    if found := _SHORT.fullmatch(text):
        folded = found[1].casefold()
        for known in types:
            if known.casefold() == folded:
                index = None if found[2] is None else int(found[2])
                return DeviceName(device_type=known, index=index)
    return DeviceName.parse(text)


def meant_by(given: object) -> str | DeviceName | None:
    """Return the text or the name by which *given* means a device; None if it means none.

    Raises:
        InvalidDeviceNameError: It is the place of no device, or an index below 0.
    """
    if isinstance(given, str | DeviceName):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return DeviceName(device_type="GPU", index=given)
    return _reader()(given)


@cache
def _reader() -> Callable[[object], str | DeviceName | None]:
    # Frameworks know names, which know them by this text alone.
    read: Callable[[object], str | DeviceName | None]
    read = import_module("devicecore.frameworks").name_of_device
    return read


def type_named(text: str, types: Iterable[str]) -> str:
    """Return the type or class that *text* names; a word that nobody knows is returned as it is.

    Args:
        text: Such as ``"cuda"``, ``"Acme"`` or ``"DmlExecutionProvider"``.
        types: The types that are known here, which count first and in any case.

    Raises:
        InvalidDeviceNameError: It is no word for a type, but for a vendor or for nothing.
    """
    written: object = text
    if not (isinstance(written, str) and WORD.fullmatch(text)):
        raise _no_type(str(written), types)
    folded = text.casefold()
    for known in types:
        if known.casefold() == folded:
            return known
    if folded in VENDOR_TYPES:
        raise InvalidDeviceNameError(text, 0, why_unknown(text), near_types(text)[0])
    return known_type(text) or text


def _no_type(text: str, types: Iterable[str]) -> InvalidDeviceNameError:
    """Return the error for what cannot be a type; one device of a type is told by its colon."""
    if found := _ONE_DEVICE.match(text):
        known = {each.casefold(): each for each in types}
        meant = known.get(found[1].casefold()) or known_type(found[1]) or ""
        reason = "it names one device, and a type is asked for"
        return InvalidDeviceNameError(text, found.end(1), reason, meant, "type")
    reason = "a type is a letter, then letters, digits and _"
    return InvalidDeviceNameError(text, 0, reason, wanted="type")
