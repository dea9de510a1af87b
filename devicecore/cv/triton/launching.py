"""Launches of Triton's kernels: through its compiler once, by their handle from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

# Triton compiles a kernel for pointers that are so aligned, and another one for all others.
_ALIGNMENT = 16
_handles: dict[Hashable, Any] = {}


def launch(
    kernel: Any, grid: tuple[int, int, int], args: Sequence[Any], constants: Mapping[str, Any]
) -> None:
    """Launch *kernel* on the current stream of the current device.

    Finding out which compiled kernel fits takes longer than the launch itself, so it is done once
    for all arguments that are no tensors, and for each alignment of those that are.

    Args:
        kernel: A function that Triton compiles.
        grid: How many programs along each axis.
        args: Its arguments.
        constants: Those that it is compiled for, in its order.
    """
    key = (
        kernel,
        *constants.values(),
        *(_kind(each) if isinstance(each, torch.Tensor) else each for each in args),
    )
    handle = _handles.get(key)
    if handle is None:  # also always where Triton interprets
        _handles[key] = kernel[grid](*args, **constants)
    else:
        handle[grid](*args, *constants.values())


def _kind(tensor: torch.Tensor) -> Hashable:
    return tensor.dtype, tensor.device, tensor.data_ptr() % _ALIGNMENT == 0
