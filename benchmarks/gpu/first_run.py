"""What a CUDA machine says of devicecore: a kernel on cuda:0, checked, then timed.

Run it on the machine itself: ``python benchmarks/gpu/first_run.py results.json COMMIT``. Prints
a short table last. Times are host-side medians; a GPU's work is only queued by a call.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from devicecore import DeviceMgr, kernel, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 2000
ROUNDS = 15


@kernel("bench.scale", framework="torch")
def scale(device: Any, x: torch.Tensor, factor: int) -> torch.Tensor:
    """Multiply on the caller's current stream."""
    del device
    return x * factor


def check(manager: DeviceMgr) -> dict[str, Any]:
    """Compare a kernel's results with the CPU's before anything is timed."""
    gpu, cpu = manager.lookup_device("cuda:0"), manager.lookup_device("cpu:0")
    x = torch.arange(1 << 20)
    expected = cpu.compute("bench.scale", x, 3)
    got = gpu.compute("bench.scale", x.to("cuda:0"), 3)
    later = gpu.compute_async("bench.scale", x.to("cuda:0"), 3).result(timeout=60)
    routed = manager.compute("bench.scale", x.to("cuda:0"), 3)
    return {
        "equal": bool(torch.equal(got.cpu(), expected)),
        "asynchronous equal": bool(torch.equal(later.cpu(), expected)),
        "routed equal, stayed on the GPU": bool(
            torch.equal(routed.cpu(), expected) and routed.device == torch.device("cuda:0")
        ),
    }


def medians_us(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median over rounds of the host time of each call, in µs.

    The calls take turns, so that what disturbs the machine disturbs them all.
    """
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 + ROUNDS):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            rounds[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: statistics.median(found[1:]) for name, found in rounds.items()}


def times(manager: DeviceMgr) -> dict[str, float]:
    """Return host times of a call, in µs; the bare torch call is the peer."""
    gpu = manager.lookup_device("cuda:0")
    x = torch.ones(1, device="cuda:0")
    return medians_us(
        {
            "x * 3": lambda: x * 3,
            "the kernel's function": lambda: scale.function(gpu, x, 3),
            "Device.compute": lambda: gpu.compute("bench.scale", x, 3),
            "DeviceMgr.compute": lambda: manager.compute("bench.scale", x, 3),
            "x * 3, until the result": lambda: float(x * 3),
            "compute_async, until the result": lambda: gpu.compute_async(
                "bench.scale", x, 3
            ).result(),
        }
    )


def main() -> int:
    """Check, time, write the JSON and print the table."""
    manager = DeviceMgr.create()
    found: dict[str, Any] = {
        "machine": {
            "GPU": torch.cuda.get_device_name(0),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "commit": " ".join(sys.argv[2:]),
        },
        "resolve gpu": resolve("gpu", framework="torch").device.label,
        "devices": [device.label for device in manager],
        "checks": check(manager),
        "host_us": times(manager),
    }
    Path(sys.argv[1]).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    for name, value in {**found["checks"], **found["host_us"]}.items():
        print(f"{name:34} {value if isinstance(value, bool) else f'{value:8.2f} us'}")
    return 0 if all(found["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
