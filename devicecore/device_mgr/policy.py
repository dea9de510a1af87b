"""Policies: which devices a call may run on, in which order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from attrs import frozen

from devicecore.errors import InvalidDeviceNameError
from devicecore.names import DeviceName

_FORMS = "a policy is 'auto', 'prefer:<names>' or 'require:<name>'"


@frozen
class Policy:
    """Which devices a call may run on, in which order.

    Attributes:
        kind: ``"auto"``: all, by priority. ``"prefer"``: those of the user's list, in its order.
            ``"require"``: one and no other.
        names: The user's list, as it was written.
    """

    kind: Literal["auto", "prefer", "require"]
    names: tuple[str, ...] = ()


def parse_policy(text: Any) -> Policy:
    """Return the policy that *text* writes: ``auto``, ``prefer:cuda:1,cpu`` or ``require:cuda``.

    Raises:
        ValueError: It is none.
        InvalidDeviceNameError: A name in it is none.
    """
    if not isinstance(text, str):
        msg = f"invalid policy {text!r}: {_FORMS}"
        raise ValueError(msg)  # noqa: TRY004 - a policy that is none is a wrong value, str or not
    return _parsed(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Policy:
    kind, _, listed = text.strip().partition(":")
    kind = kind.strip().casefold()
    if kind == "auto" and not listed:
        return Policy("auto")
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if kind == "prefer" and names:
        return Policy("prefer", names)
    if kind == "require" and len(names) == 1:
        return Policy("require", names)
    hint = f"; did you mean 'require:{text.strip()}'?" if _is_name(text.strip()) else ""
    msg = f"invalid policy {text!r}: {_FORMS}{hint}"
    raise ValueError(msg)


def _is_name(text: str) -> bool:
    try:
        return DeviceName.parse(text).device_type is not None
    except InvalidDeviceNameError:
        return False
