"""Which scopes are open: a chain of frames for each context, a stack of them for each thread."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from devicecore.fork import rearm_after_fork
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.device import Device
    from devicecore.frameworks.base.adapter import Adapter

# What a frame holds instead of its thread when it is over, when it was open in the parent of this
# process, or while the decorated coroutine or generator that entered it waits for its next step.
# None of them is the identifier of a thread.
ENDED: Final = 0
FORKED: Final = -1
SUSPENDED: Final = -2


Saves: TypeAlias = "list[tuple[Adapter, Any]]"


class Frame:
    """One entry of one scope: the device, whoever entered, and what leaving has to restore.

    Frames link to the frame around them and are never copied. Contexts share them, so one that
    ended is marked as such, and ignored by whoever still holds it.
    """

    __slots__ = ("device", "owner", "parent", "saves", "thread")

    def __init__(
        self, device: Any, parent: Frame | None, owner: Any, thread: int, saves: Saves
    ) -> None:
        self.device: Any = device
        self.parent: Frame | None = parent
        self.owner: Any = owner
        self.thread: int = thread
        self.saves: Saves = saves


# The end of every chain. Its device is the default one, None as long as that is the host.
OUTSIDE: Frame = Frame(None, None, None, ENDED, [])

innermost: ContextVar[Frame] = ContextVar("devicecore_scopes", default=OUTSIDE)
_innermost = innermost.get

# The frames that wait. They are in no thread's stack, and the contexts do not lead to all of them.
suspended: set[Frame] = set()


class ThreadScopes:
    """What is open in one thread, whichever context entered it: frameworks know only threads.

    Attributes:
        ident: The thread.
        frames: Its frames, the one entered last at the end.
        adapters: The frameworks that those frames were applied to.
    """

    __slots__ = ("adapters", "frames", "ident")

    def __init__(self) -> None:
        self.ident: int = get_ident()
        self.frames: list[Frame] = []
        self.adapters: tuple[Adapter, ...] = ()


class _Here(threading.local):
    def __init__(self) -> None:
        self.scopes: ThreadScopes = ThreadScopes()


here: _Here = _Here()


def current_device() -> Device:
    """Return the device of the innermost scope, outside of all scopes the default device.

    Only scopes of the caller's own thread count, and among its tasks only the caller's own.
    """
    frame = _innermost()
    if frame is OUTSIDE:
        return frame.device or get_default_device()
    if frame.thread == get_ident():
        return frame.device  # type: ignore[no-any-return]
    for around in open_around(frame):
        return around.device  # type: ignore[no-any-return]
    return get_default_device()


def open_around(frame: Frame | None) -> Iterator[Frame]:
    """Yield the frames of this thread that are open, from *frame* outwards."""
    thread = get_ident()
    while frame is not None:
        if frame.thread == thread:
            yield frame
        frame = frame.parent


def get_default_device() -> Device:
    """Return the device that is current outside of all scopes: CPU:0 unless another was set."""
    if OUTSIDE.device is None:
        OUTSIDE.device = host_cpu()
    return OUTSIDE.device  # type: ignore[no-any-return]


def entered_so_far() -> tuple[ThreadScopes, Frame | None]:
    """Return what says which scopes are open in this thread, for an interrupt."""
    scopes = here.scopes
    return scopes, (scopes.frames[-1] if scopes.frames else None)


def leave(scopes: ThreadScopes, frame: Frame, error: BaseException | None) -> None:
    """Take *frame* out, and put back what was there before it.

    A frame that others were entered above, in another task or by a generator, hands what it saved
    to the next one above, so that the last one to leave finds the beginning again.

    Args:
        scopes: The thread's frames.
        frame: One of them.
        error: What the block raised: an error of a framework is then only a note of it.

    Raises:
        Exception: A framework refused to go back; all others have.
    """
    _take_out(scopes, frame, ENDED, error)


def suspend(scopes: ThreadScopes, frame: Frame) -> None:
    """Take *frame* out for as long as the code that entered it waits; see `leave`.

    Raises:
        Exception: A framework refused to go back; all others have.
    """
    suspended.add(frame)
    _take_out(scopes, frame, SUSPENDED, None)


def _take_out(scopes: ThreadScopes, frame: Frame, state: int, error: BaseException | None) -> None:
    frames = scopes.frames
    try:
        if frame.saves:
            above = frames[frames.index(frame) + 1 :] if frame in frames else []
            restore(frame, above, error)
    finally:
        if not frame.saves:  # else an interrupt has come, and it is still to be taken out
            frame.thread = state
            if state == ENDED and innermost.get() is frame:
                innermost.set(frame.parent or OUTSIDE)
            if state == ENDED:
                suspended.discard(frame)
            if frame in frames:
                frames.remove(frame)


def restore(frame: Frame, above: Sequence[Frame], error: BaseException | None) -> None:
    """Put back what *frame* had saved, and forget it; see `leave`."""
    failed: Exception | None = None
    saves = frame.saves
    while saves:
        adapter, saved = saves[-1]
        try:
            if not (above and _handed_up(adapter, saved, above)):
                adapter.leave(saved)
        except Exception as fault:  # noqa: BLE001 - the other frameworks go back all the same
            failed = failed or fault
        saves.pop()  # only now: an interrupt may come before
    if failed is None:
        return
    if error is None:
        raise failed
    error.add_note(f"and leaving the device scope failed: {failed!r}")


def put_back(saves: Saves) -> None:
    """Put back what was saved, the last one first."""
    for adapter, saved in reversed(saves):
        adapter.leave(saved)


def _handed_up(adapter: Adapter, saved: Any, above: Sequence[Frame]) -> bool:
    for frame in above:
        for position, (theirs, upper) in enumerate(frame.saves):
            if theirs is adapter:
                frame.saves[position] = (adapter, adapter.join(upper, saved))
                return True
    return False


class _Process:
    """Ends the scopes of the parent in a forked child."""

    def after_fork(self) -> None:
        """Give the frameworks their defaults back, as far as that opens no driver."""
        frames = here.scopes.frames
        for frame in reversed(frames):
            frame.thread = FORKED
            for adapter, saved in reversed(frame.saves):
                adapter.leave_in_child(saved)
        frames.clear()


_process = _Process()
rearm_after_fork(_process)
