"""Marks code that runs inside of kernels: none of its calls is migrated.

That holds for all migrators. The functions that a kernel calls, or that logging calls for us, are
no calls of the program, whichever plan names them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

_INSIDE: Final[ContextVar[bool]] = ContextVar("inside_kernels", default=False)

is_inside_kernels: Final = _INSIDE.get
"""Return whether what runs here, in this thread or task, is no call of the program."""


class InsideKernels:
    """A block of ours; made anew for each."""

    __slots__ = ("_token",)

    _token: Token[bool]

    def __enter__(self) -> None:
        """Migrate nothing from here on."""
        self._token = _INSIDE.set(True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Put back what was true before."""
        _INSIDE.reset(self._token)
