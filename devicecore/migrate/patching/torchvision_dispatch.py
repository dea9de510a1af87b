"""Registers wrappers in torchvision's dispatch table, which finds kernels by the function.

`torchvision.transforms.v2.functional.resize` asks a dict what is registered for ``resize``, which
is the wrapper while one stands in for it. So a wrapper is given what its function has there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.patching.patch_stack import Wrapper

_MODULE: Final = "torchvision.transforms.v2.functional._utils"


class TorchvisionDispatch:
    """The wrappers of one migrator that are registered in torchvision's table."""

    def __init__(self) -> None:
        self._given: list[tuple[Any, Wrapper]] = []

    def found_by_itself(
        self, function: Any, make: Callable[[Wrapper], Any]
    ) -> Callable[[Wrapper], Any]:
        """Return what makes a wrapper that is found wherever *function* finds itself.

        Args:
            function: What is to be wrapped.
            make: Makes a wrapper that is not.
        """
        if not any(each is function for each in _registry()):  # it may have no hash
            return make

        def registered(below: Wrapper) -> Any:
            wrapper = make(below)
            registry = _registry()
            registry[wrapper] = registry[function]
            self._given.append((wrapper, below))
            return wrapper

        return registered

    def forget_unused(self) -> None:
        """Take from the wrappers that are not in use any more what they were given."""
        for each in [each for each in self._given if not each[1].active]:
            self._given.remove(each)
            _registry().pop(each[0], None)


def _registry() -> dict[Any, Any]:
    found: Any = getattr(sys.modules.get(_MODULE), "_KERNEL_REGISTRY", None)
    return found if isinstance(found, dict) else {}
