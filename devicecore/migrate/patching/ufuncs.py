"""Wraps universal functions of NumPy, which have attributes that no function has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from devicecore.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.plan.keys import Segments

# What those that take whole matrices have, whose methods nobody can call.
_FACTS: Final = ("identity", "nargs", "nin", "nout", "ntypes", "signature", "types")


def keep_ufunc_facts(
    function: Any, frame: Segments, make: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what makes a wrapper that programs can use as they use *function*.

    Args:
        function: What is to be wrapped.
        frame: Its name in paths.
        make: Makes a plain function.

    Raises:
        PlanError: It has methods of its own, such as ``numpy.add.reduce``.
    """
    numpy: Any = sys.modules.get("numpy")
    is_ufunc = numpy is not None and isinstance(function, getattr(numpy, "ufunc", ()))
    if not is_ufunc:
        return make
    if function.signature is None:
        reason = "it is a ufunc, whose methods, such as reduce, a function in its place has not"
        raise PlanError("/".join(frame), reason, "name a function that calls it")

    def with_facts(below: Any) -> Any:
        wrapper = make(below)
        for name in _FACTS:
            setattr(wrapper, name, getattr(function, name))
        return wrapper

    return with_facts
