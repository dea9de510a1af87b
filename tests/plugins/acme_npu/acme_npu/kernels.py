"""Kernels of Acme's that come through the registry of kernels, for all NPUs."""

from __future__ import annotations

from typing import Any

from devicecore.kernels import kernel


@kernel("acme_npu.offset", device_type="NPU")
def offset(device: Any, x: float, amount: float) -> float:
    return x + amount
