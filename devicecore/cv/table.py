"""`Table`: a constant array, cached on every device that has asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    import numpy as np


class Table:
    """Constant numbers that kernels read.

    Args:
        values: The numbers; not to be changed any more.
    """

    __slots__ = ("_there", "host")

    def __init__(self, values: np.ndarray[Any, Any] | torch.Tensor) -> None:
        self.host: np.ndarray[Any, Any] | torch.Tensor = values
        self._there: dict[torch.device, torch.Tensor] = {}

    def on(self, like: torch.Tensor) -> torch.Tensor:
        """Return them on the device of *like*."""
        return self.there(like.device)

    def there(self, device: torch.device) -> torch.Tensor:
        """Return them on *device*."""
        tensor = self._there.get(device)
        if tensor is None:
            tensor = self._there[device] = torch.as_tensor(self.host, device=device)
        return tensor
