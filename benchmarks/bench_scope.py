"""Entering and leaving a scope, and what it costs whoever computes inside."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, current_device, device_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NPU = Device("/device:NPU:0")
CPU = Device("/device:OTHER:0", torch_device="cpu:0")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed here")


def bench_scope_no_framework(statement: Callable[..., None]) -> None:
    """A process that has imported torch does what one without does where no framework follows."""
    scope = device_scope(NPU, frameworks=())
    with scope:
        assert current_device() is NPU
    statement("with scope: pass", scope=scope)


def bench_scope_torch(statement: Callable[..., None], torch: Any) -> None:
    scope = device_scope("meta")
    with scope:
        assert torch.empty(1).is_meta
    statement("with scope: pass", scope=scope)


def bench_scope_torch_default(statement: Callable[..., None], torch: Any) -> None:
    scope = device_scope("cpu")
    with scope:
        assert not torch.empty(1).is_meta
    statement("with scope: pass", scope=scope)


def bench_peer_torch_device(statement: Callable[..., None], torch: Any) -> None:
    statement("with scope: pass", scope=torch.device("meta"))


@pytest.fixture(params=[1, 3])
def depth(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def nested(depth: int) -> Iterator[None]:
    """Scopes inside one another, the innermost one on ``meta``."""
    pytest.importorskip("torch", reason="torch is not installed here")
    devices = ["meta", CPU, "meta"][-depth:]
    with ExitStack() as entered:
        for device in devices:
            entered.enter_context(device_scope(device))
        yield


@pytest.mark.usefixtures("nested")
def bench_empty_in_scopes(statement: Callable[..., None], torch: Any) -> None:
    assert torch.empty(1).is_meta
    statement("empty(1)", empty=torch.empty)


@pytest.mark.parametrize("levels", [1, 3])
def bench_peer_empty_in_torch_device(
    statement: Callable[..., None], torch: Any, levels: int
) -> None:
    with ExitStack() as entered:
        for _ in range(levels):
            entered.enter_context(torch.device("meta"))
        statement("empty(1)", empty=torch.empty)


def bench_empty_in_cpu_scope(statement: Callable[..., None], torch: Any) -> None:
    with device_scope("cpu"):
        statement("empty(1)", empty=torch.empty)


def bench_peer_empty(statement: Callable[..., None], torch: Any) -> None:
    statement("empty(1)", empty=torch.empty)


def bench_current_device(statement: Callable[..., None]) -> None:
    with device_scope(NPU, frameworks=()):
        statement("current()", current=current_device)


def bench_current_device_outside(statement: Callable[..., None]) -> None:
    statement("current()", current=current_device)
