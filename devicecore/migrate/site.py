"""`Site`: the calls of one path that a plan names, and whether they still may leave the host."""

from __future__ import annotations

import copy
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import DeviceError, OutOfMemoryError, RefusedCallError
from devicecore.fork import rearm_after_fork
from devicecore.ledger import default_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from devicecore.device import Device
    from devicecore.kernels import Exactness
    from devicecore.migrate.guard import Guard
    from devicecore.migrate.plan import Options
    from devicecore.migrate.report import Tally
    from devicecore.migrate.strategy import Strategy

# After so many faults one after the other, no more calls are tried.
_MOST_FAULTS = 3


@frozen
class Care:
    """How closely calls are watched.

    Attributes:
        is_strict: Whether an error takes the place of the original function's answer.
        verify: Of how many calls one is also computed by the original; 0 for none.
        keeps: Returns whether a result keeps a promise, given it and the original's.
        guard: Says whether calls may leave the host in this process.
        inside_kernels: Returns what kernels run inside of, so that nothing of theirs is migrated.
    """

    is_strict: bool
    verify: int
    keeps: Callable[[Exactness, Any, Any], bool]
    guard: Guard
    inside_kernels: Callable[[], AbstractContextManager[object]]


@frozen(eq=False)
class Site:
    """The calls of one path.

    Attributes:
        device: Where they are to run.
        options: How they are migrated.
        strategy: What computes them.
        care: How closely they are watched.
        tally: Counts them.
    """

    device: Device
    options: Options
    strategy: Strategy
    care: Care
    tally: Tally
    _state: _State = field(init=False, factory=lambda: _State(), repr=False)  # noqa: PLW0108 - below

    def call(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what *original* would, computed on the device where that can be.

        Raises:
            DeviceError: It cannot, and an error was asked for in the place of the host's answer.
        """
        reason = self._why_not(args)
        if reason:
            return self._on_host(original, args, kwargs, reason)
        start = time.perf_counter()
        try:
            if self.strategy.runs_original:
                result = self._computed(original, args, kwargs)
            else:
                with self.care.inside_kernels():
                    result = self._computed(original, args, kwargs)
        except RefusedCallError as error:
            reasons = "; ".join(f"{label}: {why}" for label, why in error.refused.items())
            return self._instead(error, reasons, original, args, kwargs)
        except Exception as error:
            if self.strategy.runs_original and not self._is_fault(error):
                raise
            self._state.failed(f"{type(error).__name__}: {error}")
            if isinstance(error, OutOfMemoryError):
                _free_caches()
            reason = f"{type(error).__name__}: {error}"
            return self._instead(error, reason, original, args, kwargs)
        seconds = time.perf_counter() - start
        self.tally.migrated(seconds, _size(args) + _size([result]))
        if self._state.succeeded(self.care.verify):
            return self._verified(result, original, args, kwargs)
        return result

    def _computed(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.strategy.compute(self.device, self.options, original, args, kwargs)

    def _why_not(self, args: tuple[Any, ...]) -> str:
        if self._state.off:
            return self._state.off
        reason = self.care.guard.reason(self.device)
        if reason:
            return reason
        wanted = self.options.min_pixels
        if wanted and (pixels := _pixels(args)) < wanted:
            return f"{pixels} pixels are fewer than {wanted}"
        return ""

    def _is_fault(self, error: Exception) -> bool:
        """Return whether an error is the device's, and not the program's own."""
        return isinstance(error, DeviceError) or self.device.device_error(error) is not None

    def _instead(
        self,
        error: Exception,
        reason: str,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Let the original answer a call that the device could not."""
        try:
            result = self._on_host(original, args, kwargs, reason)
        except Exception as own:
            # Nobody can compute it: the caller shall see what it would without a migrator.
            raise own from None
        if self.care.is_strict:
            raise error
        return result

    def _on_host(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reason: str,
    ) -> Any:
        default_ledger().record(self.tally.path, self.device.name, "CPU:0", reason)
        start = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            self.tally.fell_back(time.perf_counter() - start, reason)

    def _verified(
        self,
        result: Any,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return a result that was compared with the original's, or that one if they differ."""
        # The original may write into the same array.
        found = copy.deepcopy(result)
        expected = original(*args, **kwargs)
        if self.care.keeps(self.options.accept, found, expected):
            return result
        reason = f"its result was not {self.options.accept}, so it is not used any more"
        self._state.off = reason
        default_ledger().record(self.tally.path, self.device.name, "CPU:0", reason)
        return expected


class _State:
    """What the calls of a site have led to so far."""

    def __init__(self) -> None:
        self.off = ""
        self._lock = threading.Lock()
        self._faults = 0
        self._calls = 0
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def failed(self, reason: str) -> None:
        """Count a fault, and try no more after several."""
        with self._lock:
            self._faults += 1
            if self._faults >= _MOST_FAULTS and not self.off:
                self.off = f"switched off after {self._faults} faults, the last one: {reason}"

    def succeeded(self, verify: int) -> bool:
        """Count a call that went well, and return whether it is to be verified."""
        with self._lock:
            self._faults = 0
            self._calls += 1
            return verify > 0 and self._calls % verify == 0


def _size(values: Iterable[Any]) -> int:
    """Return how many bytes the arrays among values have."""
    return sum(value.nbytes for value in values if hasattr(value, "nbytes"))


def _pixels(args: tuple[Any, ...]) -> int:
    """Return the pixels of the first image among arguments."""
    for value in args:
        shape = tuple(getattr(value, "shape", ()))
        if len(shape) > 1:
            return int(shape[0] * shape[1])
    return 0


def _free_caches() -> None:
    """Give memory that torch keeps for later back to its card."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
