"""What walking through a batch costs where nothing has to move, and through one that moves.

Figures are for one of its leaves. Moving goes to torch's ``meta``, so that no memory is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devicecore import tensors_to_device

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable

LEAVES = 1000


@pytest.fixture
def batch() -> dict[str, list[Any]]:
    """Return a thousand tensors in lists of ten in a dict."""
    return {f"k{index}": [torch.zeros(64) for _ in range(10)] for index in range(LEAVES // 10)}


@pytest.fixture
def for_each_leaf(benchmark: Any) -> Callable[[Callable[[], Any]], Any]:
    """Return a function that times a call; `report.py` divides by the leaves."""

    def time(call: Callable[[], Any]) -> Any:
        benchmark.extra_info["calls"] = LEAVES
        return benchmark.pedantic(call, rounds=100, iterations=5, warmup_rounds=3)

    return time


def bench_transfer_nothing_to_move(batch: Any, for_each_leaf: Any) -> None:
    assert for_each_leaf(lambda: tensors_to_device(batch, "cpu")) is batch


def bench_transfer_one_tensor(batch: Any, statement: Callable[..., None]) -> None:
    tensor = batch["k0"][0]
    assert tensors_to_device(tensor, "cpu") is tensor
    statement("move(tensor, 'cpu')", move=tensors_to_device, tensor=tensor)


def bench_transfer_moved(batch: Any, for_each_leaf: Any) -> None:
    moved = for_each_leaf(lambda: tensors_to_device(batch, "meta"))
    assert moved["k9"][9].device.type == "meta"


def bench_transfer_packed(batch: Any, for_each_leaf: Any) -> None:
    moved = for_each_leaf(lambda: tensors_to_device(batch, "meta", coalesce=True))
    assert moved["k9"][9].device.type == "meta"


def bench_peer_to_nothing_to_move(batch: Any, for_each_leaf: Any) -> None:
    leaves = [leaf for leaves in batch.values() for leaf in leaves]
    device = torch.device("cpu")
    assert for_each_leaf(lambda: [leaf.to(device) for leaf in leaves])[0] is leaves[0]


def bench_peer_to_moved(batch: Any, for_each_leaf: Any) -> None:
    leaves = [leaf for leaves in batch.values() for leaf in leaves]
    device = torch.device("meta")
    assert for_each_leaf(lambda: [leaf.to(device) for leaf in leaves])[0].device.type == "meta"


def bench_peer_pytree_nothing_to_move(batch: Any, for_each_leaf: Any) -> None:
    pytree = pytest.importorskip("torch.utils._pytree")
    device = torch.device("cpu")

    def move() -> Any:
        return pytree.tree_map(lambda leaf: leaf.to(device), batch)

    assert for_each_leaf(move)["k9"][9] is batch["k9"][9]


def bench_peer_optree_nothing_to_move(batch: Any, for_each_leaf: Any) -> None:
    optree = pytest.importorskip("optree")
    device = torch.device("cpu")

    def move() -> Any:
        return optree.tree_map(lambda leaf: leaf.to(device), batch)

    assert for_each_leaf(move)["k9"][9] is batch["k9"][9]


def bench_peer_accelerate_nothing_to_move(batch: Any, for_each_leaf: Any) -> None:
    accelerate = pytest.importorskip("accelerate.utils")
    device = torch.device("cpu")
    moved = for_each_leaf(lambda: accelerate.send_to_device(batch, device))
    assert moved["k9"][9] is batch["k9"][9]


def bench_peer_lightning_nothing_to_move(batch: Any, for_each_leaf: Any) -> None:
    utilities = pytest.importorskip("lightning_fabric.utilities")
    device = torch.device("cpu")
    moved = for_each_leaf(lambda: utilities.move_data_to_device(batch, device))
    assert moved["k9"][9] is batch["k9"][9]
