"""Which kernels a caller allows: a label, the loosest promise, and whether OpenCV may answer."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from attrs import evolve, frozen

from devicecore.cv.plan import PROMISES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.kernels import Exactness

Label = Literal["native", "torch", "triton", "kornia"]
LABELS: tuple[Label, ...] = ("native", "torch", "triton", "kornia")


@frozen
class Policy:
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
        return PROMISES.index(promise) <= PROMISES.index(self.accepted)


DEFAULT = Policy()
_policy: ContextVar[Policy] = ContextVar("devicecore_cv_policy", default=DEFAULT)


def current_policy() -> Policy:
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
    if label not in LABELS:
        msg = f"a label is one of {', '.join(LABELS)}, not {label!r}"
        raise ValueError(msg)
    with _changed(evolve(_policy.get(), label=label)):
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
    if promise not in PROMISES:
        msg = f"a promise is one of {', '.join(PROMISES)}, not {promise!r}"
        raise ValueError(msg)
    with _changed(evolve(_policy.get(), accepted=promise)):
        yield


@contextmanager
def strict() -> Iterator[None]:
    """Raise `NoKernelError` where OpenCV itself would have to answer for another device."""
    with _changed(evolve(_policy.get(), is_strict=True)):
        yield


@contextmanager
def _changed(policy: Policy) -> Iterator[None]:
    token = _policy.set(policy)
    try:
        yield
    finally:
        _policy.reset(token)
