"""`UniversalWrapper`: wraps a function, and decides once for each path what its calls do."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from devicecore.migrate.patching.kernel_context import InsideKernels, is_inside_kernels
from devicecore.migrate.patching.own_calls import frame_at, is_own_call, may_be_own_call
from devicecore.migrate.patching.tracker import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.calls.call_site import CallSite
    from devicecore.migrate.patching.patch_stack import Wrapper
    from devicecore.migrate.patching.tracker import CallPath, SparseContextTracker
    from devicecore.migrate.plan.keys import Segments

    Handler = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class UniversalWrapper:
    """Makes the wrappers of functions that a plan names.

    What becomes of a call is decided once for each path, and kept at its node: a call that the plan
    is not for costs little more than finding that. Calls that devicecore makes for itself, such as
    of ``numpy.array``, are not the program's: they go to the original. So do those that are made
    inside of its kernels.

    Args:
        tracker: Knows the path of a call.
        decide: Returns the site of the calls of a path, or None if the plan is not for them.
        off_plan: Returns what calls the original of a leaf, given its frame, where the plan is not
            for a call; None where there may be no arguments that it does not know.
    """

    def __init__(
        self,
        tracker: SparseContextTracker,
        decide: Callable[[CallPath], CallSite | None],
        off_plan: Callable[[Segments], Handler] | None = None,
    ) -> None:
        self._tracker = tracker
        self._decide = decide
        self._off_plan = off_plan

    def of_leaf(self, frame: Segments) -> Callable[[Wrapper], Any]:
        """Return what wraps a function that no patched function runs inside of."""
        at, decided = self._tracker.at, self._decided
        off_plan = self._off_plan and self._off_plan(frame)
        is_used_here = may_be_own_call(frame)

        def make(below: Wrapper) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if not below.active:  # somebody has kept it, and it is not in use any more
                    return below.target(*args, **kwargs)
                node = at(frame)
                site = node.decision
                if site is not None and not is_inside_kernels():
                    if is_used_here and is_own_call(frame_at(1)):
                        return below.original(*args, **kwargs)  # past the other migrators, too
                    site = decided(node) if site is UNSET else site
                    if site is not None:
                        return site.call(below.target, args, kwargs)
                if off_plan is not None:
                    return off_plan(below.target, args, kwargs)
                return below.target(*args, **kwargs)

            return wrapper

        return make

    def of_consumer(self, handler: Handler) -> Callable[[Wrapper], Any]:
        """Return what wraps a function that is on no path, and is called by a handler."""

        def make(below: Wrapper) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if not below.active:
                    return below.target(*args, **kwargs)
                return handler(below.target, args, kwargs)

            return wrapper

        return make

    def of_frame(self, frame: Segments) -> Callable[[Wrapper], Any]:
        """Return what wraps a function that others run inside of, which are to know of it.

        Coroutine functions and generator functions are on the path while their code runs; nothing
        else becomes of their calls.
        """
        inside, decided, tracked = self._tracker.inside, self._decided, self._tracker.tracked
        is_used_here = may_be_own_call(frame)

        def make(below: Wrapper) -> Any:
            if not _runs_at_once(below.original):
                return tracked(below, frame)

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if not below.active or is_inside_kernels():
                    return below.target(*args, **kwargs)
                if is_used_here and is_own_call(frame_at(1)):
                    return below.original(*args, **kwargs)  # past the other migrators, too
                with inside(frame) as node:
                    site = node.decision
                    if site is UNSET:
                        site = decided(node)
                    if site is None:
                        return below.target(*args, **kwargs)
                    return site.call(below.target, args, kwargs)

            return wrapper

        return make

    def _decided(self, node: CallPath) -> CallSite | None:
        # Two threads may decide at once: both find the same, and one of them is kept.
        with InsideKernels():  # what it asks may call the same function
            node.decision = self._decide(node)
        return node.decision  # type: ignore[no-any-return]


def _runs_at_once(function: Any) -> bool:
    """Return whether calling a function runs it, and makes nothing that runs later."""
    return not (
        inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    )
