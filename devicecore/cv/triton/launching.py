"""Launches of Triton's kernels: through its compiler once, by their handle from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import torch

# Triton compiles a kernel for pointers that are so aligned, and another one for all others.
_ALIGNMENT = 16
_launchers: dict[Hashable, Any] = {}


def launch(
    kernel: Any,
    grid: tuple[int, int, int],
    args: Sequence[Any],
    constants: Mapping[str, Any],
    key: Hashable,
    warps: int,
) -> None:
    """Launch *kernel* on the current stream of the current device.

    Finding out which compiled kernel fits takes longer than the launch itself, so it is done once
    for each *key*.

    Args:
        kernel: A function that Triton compiles.
        grid: How many programs along each axis.
        args: Its arguments.
        constants: Those that it is compiled for, in its order.
        key: Everything that the grid, the constants and the arguments follow from, but for where
            tensors lie; see `aligned`.
        warps: How many groups of 32 threads share a program.
    """
    launcher = _launchers.get(key)
    if launcher is not None:
        launcher(*args, *constants.values())
        return
    handle = kernel[grid](*args, **constants, num_warps=warps)
    if handle is not None:  # None where Triton interprets
        _launchers[key] = handle[grid]


def aligned(tensor: torch.Tensor) -> bool:
    """Return whether a tensor lies where Triton's faster kernels can read it."""
    return tensor.data_ptr() % _ALIGNMENT == 0
