"""Compiles Triton's kernels for a GPU that is not here: ``python -m tests.cv.compiling cuda add``.

Its interpreter runs kernels that its compiler refuses. Every example of an operation is planned as
for such a GPU, and each kernel it would launch is compiled down to the GPU's instructions.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from devicecore.cv import catalog
from devicecore.cv.triton_support import strips
from devicecore.cv.triton_support.launch import Launch

TARGETS = {"cuda": GPUTarget("cuda", 90, 32), "hip": GPUTarget("hip", "gfx942", 64)}


class AbsentGpu:
    """Stands for the driver of a GPU that is not here; it is asked for no more than this."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0


def main(kind: str, names: list[str]) -> None:
    """Compile the kernels of operations, and print how many there are of each."""
    driver.set_active(AbsentGpu(TARGETS[kind]))
    kernels: set[str] = set()

    def compiled(self: Any, *tensors: torch.Tensor) -> None:
        made = self._kernel.warmup(
            *tensors,
            *self._rest,
            grid=self._grid,
            **self._constants,
            num_warps=self._warps,
            enable_fp_fusion=False,
        )
        kernels.add(made.hash)

    launching: Any = Launch
    launching.__call__ = compiled
    gpus: Any = torch.cuda
    gpus.current_device = lambda: None  # as the index of the host
    halves: Any = strips
    halves.compares_halves = lambda _: kind == "cuda"
    for name in names or sorted(catalog.TRITON):
        operation = catalog.find(name, "triton")
        assert operation is not None
        importers: list[Any] = [
            own for key, own in sys.modules.items() if key.startswith("devicecore.cv.")
        ]
        for module in importers:
            if hasattr(module, "is_native"):
                module.is_native = lambda _: kind == "cuda"
        kernels.clear()
        for args, kwargs in operation.examples():
            if operation.plan(args, kwargs) is not None:
                moved, named = operation.replace_images(args, kwargs, _tensor)
                operation.run(None, *moved, **named)
        sys.stdout.write(f"{name} {len(kernels)}\n")


def _tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
