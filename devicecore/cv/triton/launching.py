"""`Launch`: one of Triton's kernels with all its arguments but the tensors that vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

# Triton compiles a kernel for pointers that are so aligned, and another one for all others.
_ALIGNMENT = 16


class Launch:
    """Launches a kernel on the current stream of the current device.

    Finding out which compiled kernel fits takes Triton longer than the launch itself, so that is
    done once, and the handle it gives is used from then on.

    Args:
        kernel: A function that Triton compiles; its first arguments are a source and a target.
        grid: How many programs along each axis.
        rest: Its other arguments.
        constants: Those that it is compiled for, in its order.
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
        self._launchers: dict[bool, Any] = {}

    def __call__(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Launch the kernel.

        Args:
            source: Tensor to read, which `is_aligned`; always of the same shape and type.
            target: Tensor to write, always of the same shape, type and strides.
        """
        alignment = is_aligned(target)
        launcher = self._launchers.get(alignment)
        if launcher is not None:
            launcher(source, target, *self._all)
            return
        compiled = self._kernel[self._grid]
        handle = compiled(source, target, *self._rest, **self._constants, num_warps=self._warps)
        if handle is not None:  # None where Triton interprets
            self._launchers[alignment] = handle[self._grid]


def is_aligned(tensor: torch.Tensor) -> bool:
    """Return whether a tensor lies where Triton's faster kernels can read it."""
    return tensor.data_ptr() % _ALIGNMENT == 0
