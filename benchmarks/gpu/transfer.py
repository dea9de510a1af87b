"""What moving batches to a CUDA GPU costs, beside torch's own copies and accelerate.

Run it on the machine itself: ``python benchmarks/gpu/transfer.py results.json COMMIT``. Checks that
what arrives is right first, and prints a short table last. Every time is until the GPU is done.
"""

from __future__ import annotations

import json
import platform
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from devicecore import tensors_to_device

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE = torch.device("cuda:0")
LEAVES = 1000
LARGE_BYTES = 256 << 20
ROUNDS = 31
WARM_UP = 5


def small_leaves() -> dict[str, list[torch.Tensor]]:
    """Return a thousand tensors of 64 floats in lists of ten in a dict."""
    return {
        f"k{index}": [torch.full((64,), float(10 * index + each)) for each in range(10)]
        for index in range(LEAVES // 10)
    }


def calls_with_small_leaves() -> dict[str, Callable[[], Any]]:
    """Return the calls that move many small tensors; the second one is what a loop would do."""
    batch = small_leaves()
    calls: dict[str, Callable[[], Any]] = {
        "tensors_to_device": lambda: tensors_to_device(batch, "cuda:0"),
        "one .to each": lambda: each(lambda leaf: leaf.to(DEVICE)),
        "one .to each, non_blocking": lambda: each(lambda leaf: leaf.to(DEVICE, non_blocking=True)),
        "tensors_to_device, coalesce=False": lambda: tensors_to_device(
            batch, "cuda:0", coalesce=False
        ),
    }

    def each(move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        return {key: [move(leaf) for leaf in leaves] for key, leaves in batch.items()}

    try:
        from accelerate.utils import (  # type: ignore[import-not-found] # not beside the tests
            send_to_device,
        )
    except ImportError:
        return calls
    calls["accelerate.send_to_device"] = lambda: send_to_device(batch, DEVICE)
    calls["accelerate.send_to_device, non_blocking"] = lambda: send_to_device(
        batch, DEVICE, non_blocking=True
    )
    return calls


def calls_with_one_large() -> dict[str, Callable[[], Any]]:
    """Return the calls that move 256 MiB, page-locked and pageable."""
    pageable = torch.rand(LARGE_BYTES // 4)
    pinned = pageable.pin_memory()
    return {
        "256 MiB pinned, tensors_to_device": lambda: tensors_to_device({"x": pinned}, "cuda:0"),
        "256 MiB pinned, .to(non_blocking=True)": lambda: {
            "x": pinned.to(DEVICE, non_blocking=True)
        },
        "256 MiB pageable, tensors_to_device": lambda: tensors_to_device({"x": pageable}, "cuda:0"),
        "256 MiB pageable, .to": lambda: {"x": pageable.to(DEVICE)},
    }


def calls_to_the_host() -> dict[str, Callable[[], Any]]:
    """Return the calls that bring many small tensors back."""
    there = tensors_to_device(small_leaves(), "cuda:0")
    return {
        "to the host, tensors_to_device": lambda: tensors_to_device(there, "cpu"),
        "to the host, wait=False and wait()": lambda: tensors_to_device(
            there, "cpu", wait=False
        ).wait(),
        "to the host, one .to each": lambda: {
            key: [leaf.to("cpu") for leaf in leaves] for key, leaves in there.items()
        },
    }


def medians_us(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median time of each call in µs; the calls take turns, in any order.

    In the same order always, each would follow the same one, and find the caches as that left them.
    """
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    order, chance = list(calls.items()), random.Random(0)  # noqa: S311 - no secret
    for _ in range(WARM_UP + ROUNDS):
        chance.shuffle(order)
        for name, call in order:
            torch.cuda.synchronize()
            start = time.perf_counter()
            result = call()
            torch.cuda.synchronize()
            rounds[name].append((time.perf_counter() - start) * 1e6)
            del result
    return {name: statistics.median(found[WARM_UP:]) for name, found in rounds.items()}


def wrong(calls: dict[str, Callable[[], Any]]) -> list[str]:
    """Return the calls that do not give what the first one gives, on the same device."""
    first, *others = calls
    expected = flat(calls[first]())
    return [
        name
        for name in others
        for old, new in zip(expected, flat(calls[name]()), strict=True)
        if old.device != new.device or not torch.equal(old, new)
    ]


def flat(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a dict of tensors or of lists of them."""
    return [
        leaf for each in value.values() for leaf in (each if isinstance(each, list) else [each])
    ]


def main() -> int:
    """Check, time, write the JSON and print the table."""
    groups = [calls_with_small_leaves(), calls_with_one_large(), calls_to_the_host()]
    there = tensors_to_device(small_leaves(), "cuda:0")
    right = [leaf[0].item() for leaf in flat(there)] == list(range(LEAVES))
    faults = [name for calls in groups for name in wrong(calls)]
    times: dict[str, float] = {}
    for calls in groups:
        times.update(medians_us(calls))
    ratio = times["tensors_to_device"] / times["one .to each"]
    share = (
        times["256 MiB pinned, .to(non_blocking=True)"] / times["256 MiB pinned, tensors_to_device"]
    )
    found = {
        "machine": {
            "GPU": torch.cuda.get_device_name(DEVICE),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "commit": " ".join(sys.argv[2:]),
        },
        "right": right and not faults,
        "faults": faults,
        "1000 small leaves, of one .to each (gate 0.2)": ratio,
        "256 MiB pinned, of the plain copy's speed (gate 0.97)": share,
        "us": times,
    }
    Path(sys.argv[1]).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    for name, value in times.items():
        print(f"{name:44} {value:10.1f} us")
    print(f"1000 small leaves: {ratio:.3f} of one .to each (gate 0.2)")
    print(f"256 MiB pinned: {share:.3f} of the plain copy's speed (gate 0.97)")
    print("right" if found["right"] else f"WRONG: {faults}")
    return 0 if found["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
