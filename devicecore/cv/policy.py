"""`KernelPolicy`: the kernels that a caller allows, by label, exactness and fallback to OpenCV."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeVar

from attrs import evolve, frozen

from devicecore.kernels.exactness import PROMISES, is_within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.kernels import Exactness

Label = Literal["native", "torch", "triton", "kornia"]
LABELS: tuple[Label, ...] = ("native", "torch", "triton", "kornia")
_ALIASES: dict[str, Label] = {"pytorch": "torch", "cv2": "native", "opencv": "native"}
_Word = TypeVar("_Word", bound=str)


@frozen
class KernelPolicy:
    """What the caller allows.

    Attributes:
        label: The only kernels to take; None for any.
        accepted: The loosest promise.
        is_strict: Whether it is an error where OpenCV itself would have to answer.
    """

    label: Label | None = None
    accepted: Exactness = "exact"
    is_strict: bool = False

    def accepts(self, promise: Exactness) -> bool:
        """Return whether results of that promise are good enough."""
        return is_within(promise, self.accepted)


DEFAULT = KernelPolicy()
_policy: ContextVar[KernelPolicy] = ContextVar("devicecore_cv_policy", default=DEFAULT)


def current_policy() -> KernelPolicy:
    """Return what is allowed here."""
    return _policy.get()


@contextmanager
def using(label: Label) -> Iterator[None]:
    """Take only the kernels of one label inside a ``with`` block or a decorated function.

    A call that no such kernel computes as exactly as accepted raises `NoKernelError`.

    Args:
        label: ``"native"`` for OpenCV on the host, ``"torch"``, ``"triton"``, or ``"kornia"`` for
            kornia's own pixels, which are only ``"close"``.

    Raises:
        ValueError: There is no such label.
    """
    checked = _checked("label", _ALIASES.get(str(label).casefold(), label), LABELS)
    with _changed(evolve(_policy.get(), label=checked)):
        yield


@contextmanager
def accept(promise: Exactness) -> Iterator[None]:
    """Accept results that are only as near to OpenCV's as *promise*; the default is ``"exact"``.

    Args:
        promise: ``"exact"`` for the same values, ``"lsb1"`` for one step of an integer type,
            ``"tolerance"`` for rounding of float arithmetic, ``"close"`` for about the same.

    Raises:
        ValueError: There is no such promise.
    """
    with _changed(evolve(_policy.get(), accepted=_checked("promise", promise, PROMISES))):
        yield


@contextmanager
def strict() -> Iterator[None]:
    """Raise `NoKernelError` where OpenCV itself would have to answer for another device."""
    with _changed(evolve(_policy.get(), is_strict=True)):
        yield


def _checked(what: str, word: _Word, known: tuple[_Word, ...]) -> _Word:
    """Return the one of *known* that *word* is in any case.

    Raises:
        ValueError: It is none; says which is near.
    """
    folded = str(word).casefold()
    for each in known:
        if each == folded:
            return each
    near = get_close_matches(folded, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    msg = f"a {what} is one of {', '.join(known)}, not {word!r}{hint}"
    raise ValueError(msg)


@contextmanager
def _changed(policy: KernelPolicy) -> Iterator[None]:
    token = _policy.set(policy)
    try:
        yield
    finally:
        _policy.reset(token)
