"""Asking a registry for the live factory of a type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device_factory import FactoryRegistry
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable


def filled() -> FactoryRegistry:
    """Return a registry with three factories of a type, asked once."""
    registry = FactoryRegistry()
    for priority in range(3):
        factory = type(f"Fake{priority}", (FakeFactory,), {"device_type": "NPU"})
        registry.register_class("NPU", factory, priority)
    assert type(registry.get_factory("NPU")).__name__ == "Fake2"
    return registry


def bench_pick_cached(statement: Callable[..., None]) -> None:
    statement("pick('NPU')", pick=filled().get_factory)


def bench_priority(statement: Callable[..., None]) -> None:
    statement("priority('NPU')", priority=filled().device_priority)
