"""What a migrator costs: calls off its plan, calls in it, frames, and its beginning and end."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.migrate import EnsureTensor, MigrationStrategy, PipelineMigrator, StrategyRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

X = np.zeros((4, 4, 3), np.uint8)
# The CPU, with kernels that are not OpenCV's own.
TORCH = {"device": "cpu", "kernel": "torch"}
MODULES = 3000
NAMES = 20


def nothing(x: Any) -> Any:
    return x


def frame(x: Any) -> Any:
    return x


NOTHING, FRAME = f"{__name__}:nothing", f"{__name__}:frame"


@functools.wraps(nothing)
def by_hand(*args: Any, **kwargs: Any) -> Any:
    return nothing(*args, **kwargs)


def _registry(**how: Any) -> StrategyRegistry:
    registry = StrategyRegistry()
    registry.register(NOTHING, MigrationStrategy(lambda x: x, **how))
    return registry


def _migrated(migrator: PipelineMigrator) -> int:
    return sum(row.migrated for row in migrator.report().rows)


# --- calls that are not in the plan ---------------------------------------------------------------


def bench_migrate_bare_call(statement: Callable[..., None]) -> None:
    statement("function(x)", function=nothing, x=X)


def bench_peer_wrapper_by_hand(statement: Callable[..., None]) -> None:
    statement("function(x)", function=by_hand, x=X)


def bench_migrate_off_plan(statement: Callable[..., None]) -> None:
    before = nothing
    with PipelineMigrator({f"{FRAME}/{NOTHING}": TORCH}, _registry()) as migrator:
        assert nothing is not before
        assert nothing(X) is X
        statement("function(x)", function=nothing, x=X)
    assert _migrated(migrator) == 0
    assert nothing is before


def bench_migrate_kept_wrapper(statement: Callable[..., None]) -> None:
    """Of a function that a program has taken while it was patched."""
    with PipelineMigrator({NOTHING: TORCH}, _registry()):
        kept = nothing
    assert kept is not nothing
    statement("function(x)", function=kept, x=X)


# --- calls that are in it -------------------------------------------------------------------------


def bench_migrate_in_plan(statement: Callable[..., None]) -> None:
    pytest.importorskip("torch")  # its default device follows, which costs a microsecond or two
    with PipelineMigrator({NOTHING: TORCH}, _registry()) as migrator:
        assert nothing(X) is X
        statement("function(x)", function=nothing, x=X)
    assert _migrated(migrator) > 1


def bench_migrate_to_tensor_and_back(statement: Callable[..., None]) -> None:
    pytest.importorskip("torch")
    registry = _registry(input_processors=(EnsureTensor(),))
    with PipelineMigrator({NOTHING: TORCH}, registry) as migrator:
        assert np.array_equal(nothing(X), X)
        statement("function(x)", function=nothing, x=X)
    assert _migrated(migrator) > 1


def bench_peer_tensor_and_back(statement: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    statement("from_numpy(x).numpy().copy()", from_numpy=torch.from_numpy, x=X)


def bench_migrate_cv2_flip(statement: Callable[..., None]) -> None:
    pytest.importorskip("torch")
    cv2 = pytest.importorskip("cv2")
    expected = cv2.flip(X, 1)
    with PipelineMigrator({"cv2.flip": TORCH}) as migrator:
        assert np.array_equal(cv2.flip(X, 1), expected)
        statement("cv2.flip(x, 1)", cv2=cv2, x=X)
    assert _migrated(migrator) > 1


def bench_peer_cv_flip(statement: Callable[..., None]) -> None:
    """The same kernel, called for by name."""
    pytest.importorskip("torch")
    pytest.importorskip("cv2")
    from devicecore import cv

    with cv.using("torch"):
        statement("cv.flip(x, 1)", cv=cv, x=X)


def bench_peer_cv2_flip(statement: Callable[..., None]) -> None:
    cv2 = pytest.importorskip("cv2")
    statement("cv2.flip(x, 1)", cv2=cv2, x=X)


# --- frames ---------------------------------------------------------------------------------------


def bench_migrate_frame_on_the_path(statement: Callable[..., None]) -> None:
    """Only what runs inside is in the plan."""
    with PipelineMigrator({f"{FRAME}/{NOTHING}": TORCH}, _registry()) as migrator:
        assert frame(X) is X
        statement("function(x)", function=frame, x=X)
    assert not migrator.report().rows


def bench_migrate_frame_in_plan(statement: Callable[..., None]) -> None:
    pytest.importorskip("torch")
    with PipelineMigrator({FRAME: TORCH}, _registry()) as migrator:
        assert frame(X) is X
        statement("function(x)", function=frame, x=X)
    assert _migrated(migrator) > 1


# --- the beginning and the end --------------------------------------------------------------------


@pytest.fixture
def modules() -> Iterator[None]:
    """Have as many modules as a large program, one of a hundred with a name of OpenCV's."""
    cv2 = pytest.importorskip("cv2")
    made = {}
    for number in range(MODULES):
        module = ModuleType(f"made_{number}")
        vars(module).update({f"name_{each}": object() for each in range(NAMES)})
        if number % 100 == 0:
            vars(module)["resize"] = cv2.resize
        made[module.__name__] = module
    sys.modules.update(made)
    yield
    for name in made:
        del sys.modules[name]


@pytest.mark.usefixtures("modules")
def bench_migrate_activate(benchmark: Any) -> None:
    cv2 = pytest.importorskip("cv2")
    pytest.importorskip("torch")
    before = cv2.resize
    active: list[PipelineMigrator] = []

    def setup() -> None:
        while active:
            active.pop().deactivate()
        active.append(PipelineMigrator({"cv2.resize": TORCH, "cv2.flip": TORCH}))

    def activate() -> None:
        active[-1].activate()

    benchmark.pedantic(activate, setup=setup, rounds=20)
    assert cv2.resize is not before
    assert sys.modules["made_0"].resize is cv2.resize
    setup()
    assert cv2.resize is before


@pytest.mark.usefixtures("modules")
def bench_migrate_deactivate(benchmark: Any) -> None:
    cv2 = pytest.importorskip("cv2")
    pytest.importorskip("torch")
    before = cv2.resize
    migrator = PipelineMigrator({"cv2.resize": TORCH, "cv2.flip": TORCH})

    def setup() -> None:
        migrator.activate()

    benchmark.pedantic(migrator.deactivate, setup=setup, rounds=20)
    assert cv2.resize is before
    assert sys.modules["made_0"].resize is before


@pytest.mark.usefixtures("modules")
def bench_peer_look_at_all_names(benchmark: Any) -> None:
    """What any search for names costs at least."""
    cv2 = pytest.importorskip("cv2")
    wanted = cv2.resize

    def look() -> int:
        spaces = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
        return sum(value is wanted for space in spaces for value in list(space.values()))

    assert benchmark.pedantic(look, rounds=20) > 1
