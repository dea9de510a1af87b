"""`SparseContextTracker`: the path of patched functions that run in this thread or task.

Only patched functions are on it, so that it costs the same however deep the program's own calls
are. The paths form a trie: entering a function again from the same path finds the same node, and
what a wrapper decided there.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from devicecore.fork import rearm_after_fork
from devicecore.scope.decorator import Decorator

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType

    from devicecore.scope.generator_steps import Ends

Function = TypeVar("Function")

UNSET: Final = object()
"""The `CallPath.decision` of a path that nobody has decided about."""

# Beyond these a node is made for each call, and forgotten with it: a recursion without end, or
# frames with ever new names, must not fill the memory.
MOST_NODES: Final = 16_384
MOST_DEPTH: Final = 256


class CallPath:
    """A node in the tree of call paths.

    Attributes:
        parent: The path without its last frame; None for the empty path.
        frame: The segments of the last frame.
        depth: How many frames there are.
        children: The paths that are one frame longer, by that frame.
        decision: Whatever the wrapper of the last frame keeps here; `UNSET` at first.
        is_kept: Whether entering the same path again finds this node.
    """

    __slots__ = ("children", "decision", "depth", "frame", "is_kept", "parent")

    def __init__(self, parent: CallPath | None, frame: tuple[str, ...], is_kept: bool) -> None:
        self.parent: Final = parent
        self.frame: Final = frame
        self.depth: Final[int] = parent.depth + 1 if parent is not None else 0
        self.children: Final[dict[tuple[str, ...], CallPath]] = {}
        self.decision: Any = UNSET
        self.is_kept: Final = is_kept

    @property
    def path(self) -> tuple[tuple[str, ...], ...]:
        """The frames, the outermost first."""
        frames = []
        node = self
        while node.parent is not None:
            frames.append(node.frame)
            node = node.parent
        return tuple(reversed(frames))

    @property
    def key(self) -> str:
        """All segments of all frames, joined by slashes."""
        return "/".join(segment for frame in self.path for segment in frame)

    def __repr__(self) -> str:
        return f"<{self.key or 'outside of all patched functions'}>"


class SparseContextTracker:
    """The path of patched functions that run in this context: this thread, this task.

    Threads begin outside of all of them. A task begins where it was made, as its context does.

    A frame is a tuple of segments, ``("cv2:resize",)`` or ``("app:Dataset", "__getitem__")``.

    Attributes:
        root: The node of the empty path.
        innermost: The node of the path here. Setting it to the node that `at` gives, and resetting
            it by the token, is what the methods do, for a wrapper that has no time for them.

    Examples:
        >>> tracker = SparseContextTracker()
        >>> with tracker.inside(("app:Dataset", "__getitem__")), tracker.inside(("cv2:resize",)):
        ...     tracker.current_key()
        'app:Dataset/__getitem__/cv2:resize'
    """

    __slots__ = ("__weakref__", "_get", "_kept", "_lock", "_set", "innermost", "root")

    def __init__(self) -> None:
        self.root: Final = CallPath(None, (), is_kept=True)
        self.innermost: Final[ContextVar[CallPath]] = ContextVar(
            "migrated_calls", default=self.root
        )
        self._get: Final = self.innermost.get
        self._set: Final = self.innermost.set
        self._kept = 0
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.RLock()  # what is collected meanwhile may come here again

    def at(self, frame: tuple[str, ...]) -> CallPath:
        """Return the node of the path here with *frame* added, without entering it.

        That is all that a call needs which no patched function runs inside of.
        """
        here = self._get()
        return here.children.get(frame) or self._grow(here, frame)

    def enter(self, frame: tuple[str, ...]) -> CallPath:
        """Add *frame* to the path, and return the node of the path that this makes."""
        node = self.at(frame)
        self._set(node)
        return node

    def exit(self) -> None:
        """Take the last frame off the path.

        Raises:
            RuntimeError: The path is empty: nothing was entered in this context.
        """
        around = self._get().parent
        if around is None:
            msg = "exit() outside of all patched functions; nothing was entered in this context"
            raise RuntimeError(msg)
        self._set(around)

    def current(self) -> CallPath:
        """Return the node of the path here."""
        return self._get()

    def current_key(self) -> str:
        """Return all segments of the path here, joined by slashes."""
        return self._get().key

    def inside(self, frame: tuple[str, ...]) -> Inside:
        """Return a context manager that adds *frame*, and then puts back what was there before.

        It is for a call, and never held across a ``yield`` or an ``await``; see `tracked`.
        """
        return Inside(self, frame)

    def tracked(self, function: Function, frame: tuple[str, ...]) -> Function:
        """Return *function* with *frame* on the path for as long as its code runs.

        Functions, methods, coroutine functions, generator functions and asynchronous ones stay what
        they are. Between two steps of the latter their callers run, or other tasks, and do not see
        the frame. A step is on the path of whoever drives it.

        Raises:
            TypeError: It is a class, or cannot be called.
        """
        return _Tracked(self, frame)(function)

    def _grow(self, here: CallPath, frame: tuple[str, ...]) -> CallPath:
        with self._lock:
            kept = here.is_kept and here.depth < MOST_DEPTH and self._kept < MOST_NODES
            if not kept:
                return CallPath(here, frame, is_kept=False)
            if frame not in here.children:  # another thread may have been faster
                here.children[frame] = CallPath(here, frame, is_kept=True)
                self._kept += 1
            return here.children[frame]


class Inside:
    """What `SparseContextTracker.inside` returns; it can be entered again once it is left."""

    __slots__ = ("_frame", "_token", "_tracker")

    def __init__(self, tracker: SparseContextTracker, frame: tuple[str, ...]) -> None:
        self._tracker = tracker
        self._frame = frame
        self._token: Token[CallPath] | None = None

    def __enter__(self) -> CallPath:
        """Add the frame, and return the node of the path that this makes."""
        node = self._tracker.at(self._frame)
        self._token = self._tracker.innermost.set(node)
        return node

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Put back the path that was there before, whatever was entered inside and not left."""
        token, self._token = self._token, None
        if token is not None:
            token.var.reset(token)


class _Tracked(Decorator):
    __slots__ = ("_frame", "_tracker")

    def __init__(self, tracker: SparseContextTracker, frame: tuple[str, ...]) -> None:
        self._tracker = tracker
        self._frame = frame

    def for_steps(self, goes_on_after: Ends) -> Inside:
        """Return what the steps of one call run inside of: each enters and leaves."""
        del goes_on_after  # nothing is held from one step to the next
        return Inside(self._tracker, self._frame)
