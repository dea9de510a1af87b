"""For tests of Ctrl-C: an interrupt at each place of our code where there may be one."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


class _Interrupt:
    """Raises `KeyboardInterrupt` once, before the step of that number in some modules; or twice."""

    def __init__(
        self, modules: tuple[str, ...], number: int, *, steps: str, again: int | None
    ) -> None:
        self._modules = modules
        self._left = number
        self._steps = steps
        self._again = again
        self.is_raised = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not str(frame.f_globals.get("__name__", "")).startswith(self._modules):
            return None
        frame.f_trace_opcodes = self._steps == "opcode"
        # Where a function begins is where Python itself most often looks for an interrupt.
        if event in {"call", self._steps} and not self._is_over():
            self._left -= 1
            if self._left < 0:
                if self.is_raised:
                    self._again = None
                elif self._again is not None:
                    self._left = self._again
                self.is_raised = True
                raise KeyboardInterrupt
        return self

    def _is_over(self) -> bool:
        return self.is_raised and self._again is None


def interrupted(
    run: Callable[[], object],
    *modules: str,
    steps: str = "opcode",
    every: int = 1,
    again: int | None = None,
) -> Iterator[int]:
    """Run something until no interrupt comes any more; yield after each of them.

    Args:
        run: What is interrupted, each time at another place.
        modules: What the names of the modules begin with in which that happens.
        steps: ``"opcode"`` or ``"line"``.
        every: Of how many places one is tried.
        again: How many steps after the first interrupt a second one comes, if any.
    """
    for number in count(0, every):
        interrupt = _Interrupt(modules, number, steps=steps, again=again)
        before, is_interrupted = sys.gettrace(), False
        sys.settrace(interrupt)
        try:
            run()
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            sys.settrace(before)
        if is_interrupted:  # only here: as long as the error is handled, its frames are there
            yield number
        if not interrupt.is_raised:
            return
