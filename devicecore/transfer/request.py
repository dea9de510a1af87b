"""`Request`: one transfer, as it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import frozen

if TYPE_CHECKING:
    from devicecore.transfer.target import Target

Arrays = Literal["leave", "tensors"]
Coalesce = bool | Literal["auto"]


@frozen
class Request:
    """One transfer, as it was asked for.

    Attributes:
        target: Where to.
        non_blocking: Whether copies may be queued.
        coalesce: Whether small leaves share one copy.
        arrays: What becomes of numpy's arrays.
        wait: Whether copies to the host are done when the call returns.
    """

    target: Target
    non_blocking: bool = True
    coalesce: Coalesce = "auto"
    arrays: Arrays = "leave"
    wait: bool = True
