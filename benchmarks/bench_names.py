"""Device names: read, printed, merged."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = "/job:worker/replica:0/task:3/device:GPU:2"
BATCH = 2000


def bench_parse_cached(statement: Callable[..., None]) -> None:
    assert str(DeviceName.parse(FULL)) == FULL
    statement("parse(text)", parse=DeviceName.parse, text=FULL)


@pytest.mark.parametrize("form", ["/job:worker/replica:0/task:{}/device:GPU:2", "cuda:{}"])
def bench_parse_new(form: str, benchmark: Any) -> None:
    numbers = count()

    def texts() -> tuple[tuple[list[str]], dict[str, Any]]:
        """Return names that nobody has seen before."""
        return ([form.format(next(numbers)) for _ in range(BATCH)],), {}

    def parse_all(new: list[str]) -> None:
        for text in new:
            DeviceName.parse(text)

    benchmark.extra_info["calls"] = BATCH
    benchmark.pedantic(parse_all, setup=texts, rounds=30)


def bench_print(statement: Callable[..., None]) -> None:
    statement("str(name)", name=DeviceName.parse(FULL))


def bench_merge(statement: Callable[..., None]) -> None:
    left, right = DeviceName.parse("/job:worker/task:3"), DeviceName.parse("/device:GPU:2")
    assert str(left.merge(right)) == "/job:worker/task:3/device:GPU:2"
    statement("left.merge(right)", left=left, right=right)


def bench_equal(statement: Callable[..., None]) -> None:
    statement(
        "left == right", left=DeviceName.parse(FULL), right=DeviceName("worker", 0, 3, "GPU", 2)
    )


def bench_peer_torch_parse(statement: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    statement("device(text)", device=torch.device, text="cuda:0")
