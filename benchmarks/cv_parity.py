"""How far the kernels of `devicecore.cv` are from OpenCV, on any device of torch.

``python -m benchmarks.cv_parity cuda:0 results.json COMMIT``; without arguments, on the CPU. Every
example of every kernel is computed, and the same call on images of another size where it has them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from devicecore.cv import catalog
from devicecore.cv.native import original
from devicecore.cv.results import to_host
from devicecore.cv.self_test import keeps_promise


def differences(found: Any, expected: Any) -> tuple[float, int, int]:
    """Return the largest difference, how many values differ, and how many there are."""
    if isinstance(expected, (tuple, list)):
        parts = [differences(*pair) for pair in zip(found, expected, strict=True)]
        return (
            max((each[0] for each in parts), default=0.0),
            sum(each[1] for each in parts),
            sum(each[2] for each in parts),
        )
    found, expected = np.asarray(found), np.asarray(expected)
    same = np.isclose(found, expected, rtol=0, atol=0, equal_nan=True)
    with np.errstate(invalid="ignore"):
        off = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    return float(off.max(initial=0, where=~same)), int((~same).sum()), off.size


def parity(name: str, label: str, device: torch.device) -> dict[str, Any] | None:
    """Return what one kernel's examples gave on *device*."""
    operation = catalog.find(name, label)
    if operation is None:
        return None
    found: dict[str, Any] = {"calls": 0, "values": 0, "broken": 0, "promises": {}}
    for args, kwargs in operation.examples():
        plan = operation.plan(args, kwargs)
        promise = "host" if plan is None else plan.promise
        tally = found["promises"].setdefault(promise, {"calls": 0, "largest": 0.0, "differing": 0})
        tally["calls"] += 1
        if plan is None:
            continue
        moved, named = operation.replace_images(
            args, kwargs, lambda x: torch.from_numpy(np.ascontiguousarray(x)).to(device)
        )
        result = to_host(operation.run(None, *moved, **named), plan.finish)
        expected = original(name)(*args, **kwargs)
        largest, differing, values = differences(result, expected)
        found["calls"] += 1
        found["values"] += values
        found["broken"] += not keeps_promise(plan.promise, result, expected)
        tally["largest"] = max(tally["largest"], largest)
        tally["differing"] += differing
    return found


def main() -> int:
    """Compute all examples, write the JSON if asked to, and print a table."""
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    results: dict[str, Any] = {
        name: parity(name, "torch", device) for name in sorted(catalog.TORCH)
    }
    if device.type == "cuda":
        results |= {f"{name}, Triton": parity(name, "triton", device) for name in catalog.TRITON}
    results |= {f"{name}, kornia": parity(name, "kornia", device) for name in catalog.KORNIA}
    results = {name: found for name, found in results.items() if found is not None}
    machine = {
        "device": gpu,
        "torch": torch.__version__,
        "opencv": cv2.__version__,
        "features": cv2.getCPUFeaturesLine(),
        "ipp": cv2.ipp.useIPP(),
        "commit": " ".join(sys.argv[3:]),
    }
    if sys.argv[2:]:
        text = json.dumps({"machine": machine, "functions": results}, indent=2)
        Path(sys.argv[2]).write_text(text + "\n", encoding="utf-8")
    broken = 0
    for name, found in results.items():
        broken += found["broken"]
        promises = ", ".join(
            f"{promise} {tally['calls']} (up to {tally['largest']:g}, {tally['differing']} differ)"
            for promise, tally in found["promises"].items()
        )
        print(f"{name:20} {found['values']:9} values  {promises}")
    print(f"{broken} calls broke their promise on {gpu}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
