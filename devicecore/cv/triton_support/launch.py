"""`Launch`: a Triton kernel with all its arguments but the tensors that vary."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
import triton
from triton.runtime import driver

from devicecore.first_use import first_use

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

# What all drivers have, Triton's types do not know of.
_driver: Any = driver
# Older versions of Triton cannot be asked who is told about launches.
_knobs: Any = getattr(getattr(triton, "knobs", None), "runtime", None)
# What it is told about a launch: nothing, before it and after it.
_UNWATCHED = None, None, None
# Triton compiles a kernel for pointers that are so aligned, and another one for all others.
_ALIGNMENT = 16


class Launch:
    """Launches a kernel on the current stream of the device that its tensors are on.

    Finding out which compiled kernel fits takes Triton longer than the launch itself, so that is
    done once, and the handle it gives is used from then on.

    Args:
        kernel: A function that Triton compiles; its first arguments are the tensors that vary.
        grid: How many programs along each axis.
        rest: Its other arguments.
        constants: Those that it is compiled for.
        warps: How many groups of 32 threads share a program.
    """

    def __init__(
        self,
        kernel: Any,
        grid: tuple[int, int, int],
        rest: Sequence[Any],
        constants: Mapping[str, Any],
        warps: int,
    ) -> None:
        self._kernel = kernel
        self._grid = grid
        self._rest = tuple(rest)
        self._constants = dict(constants)
        self._warps = warps
        self._all = (*rest, *constants.values())
        self._known: dict[tuple[int, ...], Any] = {}

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Launch the kernel on *tensors*, always of the same shapes, types and strides."""
        index = tensors[0].get_device()
        if _is_the_only_one():
            self._launch(index, tensors)
        else:
            with device_context(tensors[0].device):
                self._launch(index, tensors)

    def _launch(self, index: int, tensors: Sequence[torch.Tensor]) -> None:
        addresses = [tensor.data_ptr() for tensor in tensors]
        # A handle is of one GPU.
        key = (index, *[address % _ALIGNMENT for address in addresses])
        known = self._known.get(key)
        if known is None:
            # Products and sums are fused where a kernel says so, and nowhere else.
            options = {"num_warps": self._warps, "enable_fp_fusion": False}
            with first_use():
                handle = self._kernel[self._grid](
                    *tensors, *self._rest, **self._constants, **options
                )
            if handle is not None:  # None where Triton interprets
                own = handle.function, handle.packed_metadata, *_UNWATCHED
                self._known[key] = handle, handle.run, own, _driver.active.get_current_stream
            return
        handle, run, own, stream_of = known
        # Of a tensor, a handle asks for the address and whether it is the GPU's.
        if _is_watched():
            handle[self._grid](*addresses, *self._all, stream=stream_of(index))
        else:
            run(*self._grid, stream_of(index), *own, *addresses, *self._all)


def _is_watched() -> bool:
    """Return whether something, such as a profiler, asks Triton to be told of launches."""
    if _knobs is None:
        return True
    before, after = _knobs.launch_enter_hook, _knobs.launch_exit_hook
    return bool(getattr(before, "calls", before)) or bool(getattr(after, "calls", after))


@functools.cache
def _is_the_only_one() -> bool:
    return torch.cuda.device_count() == 1


def device_context(device: torch.device) -> AbstractContextManager[object]:
    """Return a block in which *device* is the current one; entering takes as long as a launch."""
    if _is_the_only_one() or torch.cuda.current_device() == device.index:
        return nullcontext()
    return torch.cuda.device(device)


def is_aligned(tensor: torch.Tensor) -> bool:
    """Return whether a tensor lies where Triton's faster kernels can read it."""
    return tensor.data_ptr() % _ALIGNMENT == 0
