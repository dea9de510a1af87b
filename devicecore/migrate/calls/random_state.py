"""Keeps the random numbers of torch and Python those that the program draws without a plan."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from devicecore.frameworks import loaded

_FACTORIES = ("normal", "rand", "randint", "randn", "randperm")
_OTHERS = ("device", "generator", "out")
_MEAN_AND_STD = 2


class RandomNumbers:
    """Saves the state of torch's and Python's generators, for a call that is computed twice."""

    def __init__(self) -> None:
        import torch

        self._torch = torch.get_rng_state()
        self._python = random.getstate()

    def put_back(self) -> None:
        """Let the same numbers be drawn again."""
        import torch

        torch.set_rng_state(self._torch)
        random.setstate(self._python)


def draw_on_host(torch_device: str | None) -> AbstractContextManager[object]:
    """Return what lets torch draw the numbers of new tensors by its generator on the host.

    The tensors are on the device then, as others that are made there. Numbers that are drawn into
    tensors which are on the device already come from its own generator.

    Args:
        torch_device: torch's name of the device that new tensors are on; None for none.
    """
    torch = loaded("torch")
    if torch is None or torch_device in {None, "cpu"} or torch.get_default_device().type != "cpu":
        return nullcontext()
    found: AbstractContextManager[object] = _mode()(torch_device)
    return found


@cache
def _mode() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    factories = frozenset(getattr(torch, name) for name in _FACTORIES)

    class DrawnOnHost(TorchFunctionMode):
        def __init__(self, device: str) -> None:
            super().__init__()
            self._device = device

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            # Without a size it is asked for, means or deviations are tensors and are somewhere.
            is_sized = func is not torch.normal or "size" in kwargs or len(args) > _MEAN_AND_STD
            is_new = func in factories and is_sized
            if not is_new or any(kwargs.get(name) is not None for name in _OTHERS):
                return func(*args, **kwargs)
            has_gradient = kwargs.pop("requires_grad", False)
            found = func(*args, **kwargs | {"device": "cpu"}).to(self._device)
            return found.requires_grad_(has_gradient)

    return DrawnOnHost
