"""Finding a device in a manager, few and many."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry
from devicecore.device_mgr import DeviceMgr

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 10_000
SIZES = (8, MANY)


def devices(number: int) -> list[Device]:
    """Return devices of a cluster: eight in each task."""
    return [
        Device(f"/job:worker/replica:0/task:{index // 8}/device:GPU:{index % 8}")
        for index in range(number)
    ]


def manager_of(number: int) -> DeviceMgr:
    return DeviceMgr(devices(number), registry=FactoryRegistry())


@pytest.mark.parametrize("number", SIZES)
def bench_lookup_local_alias(number: int, statement: Callable[..., None]) -> None:
    manager = manager_of(number)
    assert manager.lookup_device("GPU:3").label == "GPU:3"
    statement("lookup('GPU:3')", lookup=manager.lookup_device)


@pytest.mark.parametrize("number", SIZES)
def bench_lookup_full_name(number: int, statement: Callable[..., None]) -> None:
    manager = manager_of(number)
    name = manager.list_devices()[number // 2].name
    statement("lookup(name)", lookup=manager.lookup_device, name=name)


def bench_lookup_parsed_name(statement: Callable[..., None]) -> None:
    manager = manager_of(8)
    assert manager.lookup_device("gpu:3").label == "GPU:3"
    statement("lookup('gpu:3')", lookup=manager.lookup_device)


def bench_add_10000(benchmark: Any) -> None:
    """Time adding devices that are there; weigh making and adding them."""

    def fresh() -> tuple[tuple[DeviceMgr, list[Device]], dict[str, Any]]:
        return (DeviceMgr(registry=FactoryRegistry()), devices(MANY)), {}

    benchmark.pedantic(DeviceMgr.add_devices, setup=fresh, rounds=5)
    manager, added = fresh()[0]
    tracemalloc.start()
    try:
        manager.add_devices(added)
        benchmark.extra_info["megabytes"] = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.clear_traces()
        whole = manager_of(MANY)
        benchmark.extra_info["megabytes, devices too"] = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert len(whole) == len(manager) == MANY


def bench_make_and_add_10000(benchmark: Any) -> None:
    assert len(benchmark.pedantic(manager_of, args=(MANY,), rounds=5)) == MANY
