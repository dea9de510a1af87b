"""Call sites of recorded frames, and of the calls inside of them."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.first_use import Stopwatch
from devicecore.migrate.calls.arrays import count_pixels
from devicecore.migrate.calls.call_site import CallSite, import_torch
from devicecore.migrate.recording.checkpoint import Checkpoint
from devicecore.migrate.recording.current import OPEN, RECORDING, current_recording
from devicecore.migrate.recording.frame import RecordedFrame
from devicecore.migrate.recording.materialize import find_kept, materialize
from devicecore.migrate.recording.opencv_random import AGAIN
from devicecore.migrate.recording.operators import call_with_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.device import Device
    from devicecore.migrate.calls.call_site import CallPolicy
    from devicecore.migrate.calls.report import Tally
    from devicecore.migrate.calls.strategy import Strategy
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Primitive
    from devicecore.migrate.recording.recording import Recording

REFUSALS = (
    AttributeError,
    BufferError,
    NotImplementedError,
    RuntimeError,
    SystemError,
    TypeError,
    ValueError,
)
"""What code that cannot use a `LazyArray` may raise. Other errors are the program's own."""


@frozen(eq=False)
class FrameCallSite(CallSite):
    """The calls of a recorded frame."""

    def _tried(
        self,
        device: Device,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what the frame returns, with arrays of numpy that the device has computed."""
        if current_recording() is not None:  # part of a frame that is recorded already
            return super()._tried(device, original, args, kwargs)
        frame = RecordedFrame(self, device)
        saved = Checkpoint(args, kwargs)
        watch = Stopwatch()
        import_torch(device)
        token = RECORDING.set(frame.recording)
        OPEN.add(frame)
        try:
            result = self.strategy.compute(device, self.options, original, args, kwargs)
            result = materialize(result, frame.recording, [*args, *kwargs.values()])
        except Exception as raised:
            if not self._may_be_ours(raised, frame.recording):
                frame.count(watch)
                raise
            reason = f"it ran anew: {type(raised).__name__}: {raised}"
        else:
            self._check(frame.recording)
            if frame.is_right:
                self.attempt.succeeded()
            frame.count(watch)
            return result
        finally:
            frame.recording.is_over = True
            OPEN.discard(frame)
            RECORDING.reset(token)
        before = AGAIN.set(deque(frame.recording.drawn))
        try:
            return self._anew(reason, saved, original, args, kwargs)
        finally:
            AGAIN.reset(before)

    def _may_be_ours(self, error: Exception, recording: Recording) -> bool:
        """Return whether the frame may have failed because arrays were not numpy's."""
        if self.policy.is_strict:
            return False
        is_of_opencv = type(error).__module__ == "cv2"
        return bool(recording.calls) and (isinstance(error, REFUSALS) or is_of_opencv)

    def _anew(
        self,
        reason: str,
        saved: Checkpoint,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run the frame on the host, as if it had not run before."""
        reason = self.tally.bounded(reason)
        saved.put_back()
        self.attempt.record(reason)
        answer = partial(self._answered, original, args, kwargs, reason)
        with self.policy.inside_kernels():
            return self.attempt.instead(reason, answer)

    def _check(self, recording: Recording) -> None:
        """See that nobody outside of the frame has arrays that are not numpy's."""
        kept = find_kept(recording)
        for memory in kept:
            memory.on_host()
        if kept:
            OPEN.add("arrays that a frame has kept")
            self.attempt.switch_off("the frame keeps arrays that it does not return")


@frozen(eq=False)
class LeafCallSite(CallSite):
    """The calls of a function inside of a recorded frame, or outside.

    Attributes:
        primitive: What records them; None where they are computed at once.
    """

    primitive: Primitive | None = None

    def call(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what stands for the result of the original, or the result."""
        recording = current_recording()
        if recording is None and not OPEN:
            return super().call(original, args, kwargs)
        if (
            self.primitive is not None
            and recording is not None
            and recording.owner is self.policy
            and recording.device is self.device
            and self._is_large(args, kwargs)
        ):
            start = time.perf_counter()
            result = recording.record(self.primitive, args, kwargs, self.options)
            if result is not None:
                self.tally.migrated(0.0, 0, host=time.perf_counter() - start)
                return result
        return call_with_arrays(partial(super().call, original), args, kwargs)

    def _is_large(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        wanted = self.options.min_pixels
        return not wanted or count_pixels(args, kwargs) >= wanted


def site_in_frames(  # noqa: PLR0917 - the fields of a site
    device: Device | None,
    source: str,
    options: Options,
    strategy: Strategy,
    policy: CallPolicy,
    tally: Tally,
    off: str,
) -> CallSite:
    """Return a site of a plan that has frames to be recorded; see `CallSite`."""
    given = (device, source, options, strategy, policy, tally, off)
    is_recorded = options.residency == "scoped"
    if strategy.runs_original:
        return FrameCallSite(*given) if is_recorded else CallSite(*given)
    return LeafCallSite(*given, getattr(strategy, "recorded", None) if is_recorded else None)
