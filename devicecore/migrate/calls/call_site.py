"""`CallSite`: runs the calls of one path on a device, or by the original function."""

from __future__ import annotations

from functools import partial

# Kept here, as a plan may name it: this module calls in the name of the program.
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attrs import Factory, field, frozen

from devicecore.errors import DeviceGoneError, OutOfMemoryError, RefusedCallError
from devicecore.first_use import Stopwatch, first_use
from devicecore.frameworks import loaded
from devicecore.migrate.calls.arrays import (
    SavedContents,
    copy_arrays,
    count_pixels,
    find_arrays,
    is_tensor,
)
from devicecore.migrate.calls.attempt import Attempt
from devicecore.migrate.calls.guard import bring_home
from devicecore.migrate.calls.random_state import RandomNumbers
from devicecore.migrate.calls.strategy import InputsNotMovedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from devicecore.device import Device
    from devicecore.kernels import Exactness
    from devicecore.migrate.calls.guard import Guard
    from devicecore.migrate.calls.report import Tally
    from devicecore.migrate.calls.strategy import Strategy
    from devicecore.migrate.plan.optimization_plan import Options


class _Elapsed(NamedTuple):
    """Seconds that a call took before its original was called."""

    device: float = 0.0
    once: float = 0.0
    host: float = 0.0


_NOTHING: Final = _Elapsed()


@frozen
class CallPolicy:
    """How strictly calls are watched.

    Attributes:
        is_strict: Whether an error takes the place of the original function's answer.
        verify: Of how many calls one is also computed by the original; 0 for none.
        within_tolerance: Returns whether a result keeps a promise, given it and the original's.
        guard: Says whether calls may leave the host in this process.
        inside_kernels: Returns what kernels run inside of, so that nothing of theirs is migrated.
    """

    is_strict: bool
    verify: int
    within_tolerance: Callable[[Exactness, Any, Any], bool]
    guard: Guard
    inside_kernels: Callable[[], AbstractContextManager[object]]


@frozen(eq=False)
class CallSite:
    """The calls of one path.

    Attributes:
        device: Where they are to run; None where that does not work, and *off* says why.
        source: Its name.
        options: How they are migrated.
        strategy: What computes them.
        policy: How closely they are watched.
        tally: Counts them.
        off: Why none of them is to leave the host.
        attempt: Whether they are still tried.
    """

    device: Device | None
    source: str
    options: Options
    strategy: Strategy
    policy: CallPolicy
    tally: Tally
    off: str = ""
    attempt: Attempt = field(
        init=False,
        repr=False,
        default=Factory(
            lambda site: Attempt(
                site.tally.path,
                site.source,
                is_strict=site.policy.is_strict,
                verify=site.policy.verify,
                inside_kernels=site.policy.inside_kernels,
            ),
            takes_self=True,
        ),
    )

    def call(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what *original* would, computed on the device where that can be.

        Raises:
            DeviceError: It cannot, and an error was asked for in the place of the host's answer.
            FallbackForbiddenError: It cannot, and the ledger does not allow the host's answer.
        """
        # A program's own function may have images inside that nobody knows of here.
        wanted = 0 if self.strategy.runs_original else self.options.min_pixels
        if wanted and count_pixels(args, kwargs) < wanted:
            # That is what the plan wants, so no ledger and no strictness forbids it.
            return self._answered(original, args, kwargs, f"fewer than {wanted} pixels")
        device, reason = self.device, self._why_not()
        if device is None or reason:
            self.attempt.refuse(reason)
            return self._on_host(original, args, kwargs, reason)
        return self._tried(device, original, args, kwargs)

    def _tried(
        self,
        device: Device,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what the device computes or, where it fails, what the original does."""
        before = self._before(args, kwargs) if self._is_verified() else None
        watch = Stopwatch()
        error: Exception | None = None
        try:
            result = self._computed(device, original, args, kwargs)
        except Exception as raised:  # of a framework: whatever it is, the original can answer
            if self.strategy.runs_original and (
                self.policy.is_strict or not _is_fault(raised, device)
            ):
                seconds, once = watch.read()
                self.tally.migrated(seconds, 0, first_use=once)
                raise
            error = raised
            spent = _Elapsed(*watch.read())
        else:
            spent = _Elapsed(*watch.read())
            self.attempt.succeeded()
            if before is None:
                moved = self._moved(device, args, kwargs, result)
                self.tally.migrated(spent.device, moved, first_use=spent.once)
                return result
            found = copy_arrays(result)  # the original may write into the same array
            before.put_back()
            return self._verified(spent, found, original, args, kwargs)
        # Outside of the handler: what the original raises has nothing of this as its context.
        if before is not None:
            before.put_back()
            self.attempt.verify_next()
        try:
            return self._instead(error, spent, original, args, kwargs)
        finally:
            error = None  # its traceback has this frame

    def _why_not(self) -> str:
        if self.off or self.attempt.off:
            return self.off or self.attempt.off
        return "" if self.device is None else self.policy.guard.reason(self.device)

    def _is_verified(self) -> bool:
        """Return whether the original computes this call too; nobody's own function runs twice."""
        return not self.strategy.runs_original and self.attempt.is_due()

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Before:
        draws = getattr(self.strategy, "draws_numbers", False)
        return _Before(SavedContents(args, kwargs), RandomNumbers() if draws else None)

    def _computed(
        self,
        device: Device,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if self.strategy.runs_original:
            return self.strategy.compute(device, self.options, original, args, kwargs)
        import_torch(device)
        with self.policy.inside_kernels():
            result = self.strategy.compute(device, self.options, original, args, kwargs)
            return bring_home(result, args, kwargs)

    def _instead(
        self,
        error: Exception,
        spent: _Elapsed,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Let the original answer a call that the device could not."""
        is_refused = isinstance(error, RefusedCallError)
        if is_refused:  # which the host has found out, before the device had anything of the call
            spent = _Elapsed(0.0, spent.once, spent.device)
        reason = _refusals(error) if is_refused else f"{type(error).__name__}: {error}"
        reason = self.tally.bounded(reason)
        if isinstance(error, OutOfMemoryError):
            free_caches(error)
        if self.policy.is_strict:
            # Of calls that nobody can compute, the original's own words come first.
            self._answered(original, args, kwargs, reason, spent)
            raise error
        answer = partial(self._on_host, original, args, kwargs, reason, spent)
        return self.attempt.instead(reason, answer, is_fault=not is_refused)

    def _on_host(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reason: str,
        spent: _Elapsed = _NOTHING,
    ) -> Any:
        self.attempt.record(reason)
        return self._answered(original, args, kwargs, reason, spent)

    def _answered(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reason: str,
        spent: _Elapsed = _NOTHING,
    ) -> Any:
        start = perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            seconds = perf_counter() - start
            seconds += spent.host
            self.tally.fell_back(seconds, reason, device=spent.device, first_use=spent.once)

    def _verified(
        self,
        spent: _Elapsed,
        found: Any,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return the original's result, and switch the path off if the device's was another."""
        is_same = False
        reason = f"its result was not {self.options.accept}, so it is not used any more"
        start = perf_counter()
        host = 0.0
        try:
            try:
                expected = original(*args, **kwargs)
            finally:
                host = perf_counter() - start
            with self.policy.inside_kernels():
                is_same = self.policy.within_tolerance(self.options.accept, found, expected)
        finally:
            if not is_same:  # also where the original has an error, and the device had none
                self.attempt.switch_off(reason)
                self.tally.fell_back(host, reason, device=spent.device, first_use=spent.once)
        if is_same:
            moved = self._moved(self.device, args, kwargs, found)
            self.tally.migrated(spent.device, moved, host=host, first_use=spent.once)
            return expected
        self.attempt.record(reason)
        self.attempt.refuse(reason)
        return expected

    def _moved(
        self, device: Device | None, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> int:
        """Return how many bytes went to the device and back: none where it is the host."""
        if device is None or device.reads_host_memory:
            return 0
        given = [*args, *(value for name, value in kwargs.items() if name != "dst")]
        return sum(
            array.nbytes
            for array in (*find_arrays(given), *find_arrays(result))
            if (
                str(array.device) != device.torch_device
                if is_tensor(array)
                # Arrays that a program's own function is given stay what they are.
                else not self.strategy.runs_original
            )
        )


@frozen
class _Before:
    """What a call that is computed twice begins with."""

    contents: SavedContents
    numbers: RandomNumbers | None

    def put_back(self) -> None:
        self.contents.put_back()
        if self.numbers is not None:
            self.numbers.put_back()


def _is_fault(error: Exception, device: Device) -> bool:
    """Return whether an error in a program's own function is the device's, and not its own."""
    faults = (InputsNotMovedError, OutOfMemoryError, DeviceGoneError)
    return isinstance(error, faults) or device.device_error(error) is not None


def _refusals(error: Any) -> str:
    reasons = "; ".join(f"{label}: {why}" for label, why in error.refused.items())
    return reasons or "no kernel is for it"


def import_torch(device: Device) -> None:
    """Import what computes calls on *device*, which does so anyway, as a part of first use."""
    if device.torch_device is not None and loaded("torch") is None:
        with first_use():
            import torch  # noqa: F401 - see above


def free_caches(error: BaseException) -> None:
    """Give memory that torch keeps for later back to its GPU, and what was used for a call."""
    known: BaseException | None = error
    while known is not None:
        known.__traceback__ = None  # its frames have the tensors of the call
        known = known.__cause__ or known.__context__
    torch = loaded("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
