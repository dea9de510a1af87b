"""The random numbers that a call may draw, put back where it is computed twice."""

from __future__ import annotations

import random


class RandomNumbers:
    """The next random numbers of torch on the host and of Python, as they are when it is made."""

    def __init__(self) -> None:
        import torch

        self._torch = torch.get_rng_state()
        self._python = random.getstate()

    def put_back(self) -> None:
        """Let the same numbers be drawn again."""
        import torch

        torch.set_rng_state(self._torch)
        random.setstate(self._python)
