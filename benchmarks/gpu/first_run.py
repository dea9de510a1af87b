"""What a CUDA machine says of devicecore: a kernel on cuda:0, checked, then timed.

Run it on the machine itself: ``python benchmarks/gpu/first_run.py results.json``. Prints a short
table last. Times are host-side medians; a GPU's work is only queued by a call.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
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
        "routed equal, stayed on the card": bool(
            torch.equal(routed.cpu(), expected) and routed.device == torch.device("cuda:0")
        ),
    }


def median_us(call: Callable[[], object]) -> float:
    """Return the median over rounds of the host time of one call, in µs."""
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS * 1e6)
        torch.cuda.synchronize()
    return statistics.median(rounds)


def times(manager: DeviceMgr) -> dict[str, float]:
    """Return host times of a call, in µs; the bare torch call is the peer."""
    gpu = manager.lookup_device("cuda:0")
    x = torch.ones(1, device="cuda:0")

    def finished() -> float:
        return float(x * 3)

    median_us(finished)  # warm-up
    return {
        "x * 3": median_us(lambda: x * 3),
        "Device.compute": median_us(lambda: gpu.compute("bench.scale", x, 3)),
        "DeviceMgr.compute": median_us(lambda: manager.compute("bench.scale", x, 3)),
        "compute_async, until the result": median_us(
            lambda: gpu.compute_async("bench.scale", x, 3).result()
        ),
        "x * 3, until the result": median_us(finished),
    }


def commit() -> str:
    """Return the commit of this checkout, or an empty string outside of git."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main() -> int:
    """Check, time, write the JSON and print the table."""
    manager = DeviceMgr.create()
    found: dict[str, Any] = {
        "machine": {
            "card": torch.cuda.get_device_name(0),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "commit": commit(),
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
