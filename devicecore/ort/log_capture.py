"""What ONNX Runtime says while something is tried, as text and not on the user's terminal.

Since version 1.32 it can call us for each message. Before, it wrote to file descriptor 2, as
drivers still do, and the reason why a provider failed stood nowhere else; that descriptor then goes
to a file for a moment. Where there can be no file, nothing is collected, and all else goes on.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from attrs import define, field

from devicecore.fork import rearm_after_fork
from devicecore.optional import require
from devicecore.ort.inherited_stderr import ended_children, pass_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_BEGINNING = r"^(\x1b\[[\d;]*m)?\S+ \S+ \[[VIWEF]:onnxruntime:[^\]]*\] "
_DECORATION = re.compile(rf"{_BEGINNING}|\x1b\[[\d;]*m")
_OURS = re.compile(_BEGINNING.encode())
_WARNING = 2  # ONNX Runtime's number; lower ones are for its developers


@contextmanager
def captured_log(*, native: bool = False) -> Iterator[list[str]]:
    """Collect ONNX Runtime's messages of the calling thread into the list that this gives.

    The list is complete when the block ends. Messages of the runtime's own threads cannot be caught
    this way and still go to stderr; so do other Python threads' messages, as they would without us.
    A logger callback that the program had set is gone afterwards: the runtime does not tell it.

    Args:
        native: Also collect whatever else the process writes to file descriptor 2, since drivers
            know no logger. That takes other threads' output with it, so only for a moment. Where
            the process has children, what may be theirs goes to stderr too, when the block ends.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
    """
    ort = require("onnxruntime", extra="onnx")
    lines: list[str] = []
    calls_back = hasattr(ort, "set_default_logger_callback")
    with ExitStack() as stack:
        if native or not calls_back:
            stack.enter_context(_DESCRIPTOR.collect(lines))
        if calls_back:
            stack.enter_context(_CALLBACK.collect(lines, ort))
        yield lines


def let_through() -> AbstractContextManager[None]:
    """Return a block whose words go where they would go if nobody collected any."""
    return _DESCRIPTOR.let_through()


@define(eq=False)
class _Callback:
    """Our logger callback, set while at least one thread collects."""

    users: int = 0
    lock: threading.Lock = field(factory=threading.Lock)
    local: threading.local = field(factory=threading.local)

    @contextmanager
    def collect(self, lines: list[str], ort: Any) -> Iterator[None]:
        outer = getattr(self.local, "lines", None)
        self.local.lines = lines
        with self.lock:
            self.users += 1
            if self.users == 1:
                ort.set_default_logger_callback(self.receive, _WARNING)
        try:
            yield
        finally:
            self.local.lines = outer
            with self.lock:
                self.users -= 1
                if self.users == 0:
                    ort.set_default_logger_callback(None)

    def receive(self, _level: int, _category: str, _log: str, _where: str, text: str) -> None:
        lines = getattr(self.local, "lines", None)
        if lines is None:
            with suppress(AttributeError, OSError, ValueError):  # no console, or a closed one
                sys.stderr.write(f"{text}\n")
        else:
            lines.append(text.strip())

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self.lock = threading.Lock()


@define(eq=False)
class _Descriptor:
    """File descriptor 2, sent to a file while at least one thread collects."""

    users: int = 0
    lock: threading.Lock = field(factory=threading.Lock)
    saved: int = -1
    file: BinaryIO | None = None
    start: int = 0
    ended: Any = None

    @contextmanager
    def collect(self, lines: list[str]) -> Iterator[None]:
        if not _is_open(2):  # a program without a console: there is nothing to take it from
            yield
            return
        file, start = self._begin()
        if file is None:
            yield
            return
        try:
            yield
        finally:
            end = os.fstat(file.fileno()).st_size
            written = os.pread(file.fileno(), end - start, start)
            lines += filter(None, map(_plain, written.decode(errors="replace").splitlines()))
            self._end()

    def _begin(self) -> tuple[BinaryIO | None, int]:
        with self.lock:
            if self.file is None:
                file = _new_file()
                if file is None:
                    return None, 0
                _flush()
                self.ended = ended_children()
                self.saved = os.dup(2)
                self.start = os.fstat(file.fileno()).st_size
                self.file = file
                os.dup2(file.fileno(), 2)
            self.users += 1
            return self.file, os.fstat(self.file.fileno()).st_size

    def _end(self) -> None:
        with self.lock:
            self.users = max(0, self.users - 1)  # a fork in between has set it to 0
            file = self.file
            if self.users > 0 or file is None:
                return
            _flush()
            os.dup2(self.saved, 2)
            self.file = None
            start, saved, ended = self.start, self.saved, self.ended
        pass_on(file, start, saved, ended, _is_ours)

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Give the descriptor back for a moment; see the function of that name."""
        with self.lock:
            if self.file is None:
                yield
                return
            _flush()
            os.dup2(self.saved, 2)
            try:
                yield
                _flush()
            finally:
                os.dup2(self.file.fileno(), 2)

    def after_fork(self) -> None:
        """Give a forked child its stderr back, whatever the parent was collecting."""
        self.lock = threading.Lock()
        if self.file is not None:
            os.dup2(self.saved, 2)
            self.users, self.file = 0, None


def _new_file() -> BinaryIO | None:
    """Return a file without a name, in memory where the system has such; None if none is taken."""
    with suppress(OSError, AttributeError):  # Linux has it, if no sandbox or limit forbids it
        return _tried(os.fdopen(os.memfd_create("devicecore-log"), "w+b", buffering=0))
    with suppress(OSError):  # no folder for it, or no room in one
        from tempfile import TemporaryFile  # late: few systems need it

        return _tried(TemporaryFile(buffering=0))
    return None


def _tried(file: BinaryIO) -> BinaryIO:
    """Return *file*, in which an empty line is, if it can be written."""
    try:
        file.write(b"\n")
    except OSError:
        file.close()
        raise
    return file


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _flush() -> None:
    if sys.stderr is not None:  # as it is under pythonw
        sys.stderr.flush()


def _plain(line: str) -> str:
    """Return *line* of ONNX Runtime's log without its colours, time and source file."""
    return _DECORATION.sub("", line).strip()


def _is_ours(line: bytes) -> bool:
    return _OURS.match(line) is not None


_CALLBACK = _Callback()
_DESCRIPTOR = _Descriptor()
rearm_after_fork(_CALLBACK)
rearm_after_fork(_DESCRIPTOR)
