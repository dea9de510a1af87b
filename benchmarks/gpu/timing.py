"""Times of calls on a CUDA GPU, by events of the GPU itself."""

from __future__ import annotations

import platform
import statistics
import time
from typing import TYPE_CHECKING, Any

import cv2
import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def median_s(
    call: Callable[[], Any], rounds: int = 30, warm_up: int = 6, together: int = 1
) -> float:
    """Return the median time of a call in seconds; what the host adds counts where it is longer.

    Args:
        call: What is timed.
        rounds: How often.
        warm_up: How often before that.
        together: How many calls one after the other are timed as one: the GPU then works on one
            while the host is at the next.
    """
    event: Any = torch.cuda.Event
    events = [[event(enable_timing=True) for _ in range(2)] for _ in range(warm_up + rounds)]
    for start, end in events:
        start.record()
        for _ in range(together):
            result = call()
            del result
        end.record()
    torch.cuda.synchronize()
    found: list[float] = [start.elapsed_time(end) for start, end in events[warm_up:]]
    return statistics.median(found) / 1e3 / together


def host_s(call: Callable[[], Any], rounds: int = 7, calls: int = 50) -> float:
    """Return how long the host is busy with a call in seconds, while the GPU is behind."""
    found = []
    for _ in range(1 + rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - start) / calls)
        torch.cuda.synchronize()
    return statistics.median(found[1:])


def machine(device: torch.device, commit: str) -> dict[str, str]:
    """Return what figures of a GPU depend on."""
    return {
        "GPU": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "opencv": cv2.__version__,
        "python": platform.python_version(),
        "commit": commit,
    }


def copy_speed(device: torch.device) -> float:
    """Return how many bytes a second a copy on the GPU reads and writes, together."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() / median_s(lambda: target.copy_(source))
