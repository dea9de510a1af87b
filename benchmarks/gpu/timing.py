"""Times of calls on a CUDA card, by events of the card itself."""

from __future__ import annotations

import platform
import statistics
import time
from typing import TYPE_CHECKING, Any

import cv2
import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def median_s(call: Callable[[], Any], rounds: int = 30, warm_up: int = 6) -> float:
    """Return the median time of a call in seconds; what the host adds counts where it is longer."""
    event: Any = torch.cuda.Event
    events = [[event(enable_timing=True) for _ in range(2)] for _ in range(warm_up + rounds)]
    for start, end in events:
        start.record()
        result = call()
        end.record()
        del result
    torch.cuda.synchronize()
    found: list[float] = [start.elapsed_time(end) for start, end in events[warm_up:]]
    return statistics.median(found) / 1e3


def host_s(call: Callable[[], Any], calls: int = 100) -> float:
    """Return how long the host is busy with a call in seconds, while the card is behind."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    found = (time.perf_counter() - start) / calls
    torch.cuda.synchronize()
    return found


def machine(device: torch.device, commit: str) -> dict[str, str]:
    """Return what figures of a card depend on."""
    return {
        "card": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "opencv": cv2.__version__,
        "python": platform.python_version(),
        "commit": commit,
    }


def copy_speed(device: torch.device) -> float:
    """Return how many bytes a second a copy on the card reads and writes, together."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() / median_s(lambda: target.copy_(source))
