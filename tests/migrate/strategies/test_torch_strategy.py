"""How functions of packages are found, promised and computed by torch."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
signal = pytest.importorskip("scipy.signal")

from devicecore.errors import RefusedCallError, RegistrationError  # noqa: E402 - after torch
from devicecore.migrate import (  # noqa: E402
    MigrationStrategy,
    PipelineMigrator,
    StrategyRegistry,
    default_strategies,
)
from devicecore.migrate.calls.compare import within_tolerance  # noqa: E402
from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.migrate.strategies import catalog  # noqa: E402
from devicecore.migrate.strategies.torch_strategy import TorchStrategy  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402
from tests.migrate.sites import FakeGpu  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.random.default_rng(0).standard_normal(100)
PAGE = Path(__file__).parents[3] / "docs/reference/migrate.md"


def by_plan(**how: str) -> dict[str, str]:
    return {"device": "cpu", "kernel": "torch", **how}


# --- promises -------------------------------------------------------------------------------------


def test_a_plan_that_asks_for_more_gets_the_functions_own_result() -> None:
    for accept, migrated in {"exact": 0, "lsb1": 0, "tolerance": 1, "close": 1}.items():
        with PipelineMigrator({"scipy.signal.resample": by_plan(accept=accept)}) as migrator:
            found = signal.resample(X, 60)
        [row] = migrator.report().rows
        assert row.migrated == migrated
        reason = f"only promised to be tolerance, and the plan accepts {accept}"
        assert migrated or reason in "".join(row.reasons)
        assert migrated or found.tobytes() == signal.resample(X, 60).tobytes()


@pytest.mark.parametrize("accept", ["exact", "tolerance"])
def test_own_strategies_promise_too(accept: Any) -> None:
    own = MigrationStrategy(abs, promise="tolerance")
    arguments: Any = (host_cpu(), Options(accept=accept), abs, (-3,), {})
    if accept == "tolerance":
        assert own.compute(*arguments) == 3
    else:
        with pytest.raises(RefusedCallError, match="only promised to be tolerance"):
            own.compute(*arguments)
    assert MigrationStrategy(abs).promise == "exact"
    promise: Any = "perfect"
    with pytest.raises(ValueError, match="perfect"):
        MigrationStrategy(abs, promise=promise)


def test_promises_in_files(tmp_path: Path) -> None:
    path = tmp_path / "strategies.toml"
    path.write_text('["app.f"]\nbackend = "a:b"\npromise = "close"\n')
    registry = StrategyRegistry()
    registry.load(path)
    found = registry.find("app", "f")
    assert isinstance(found, MigrationStrategy)
    assert found.promise == "close"
    path.write_text('["app.f"]\nbackend = "a:b"\npromise = "best"\n')
    with pytest.raises(RegistrationError, match="'best'; write one of exact, lsb1"):
        registry.load(path)


def test_complex_results_are_judged_by_both_parts() -> None:
    one = np.array([1 + 2j, 3])
    assert within_tolerance("tolerance", one + 1e-6j, one)
    assert not within_tolerance("tolerance", one + 1j, one)
    assert not within_tolerance("tolerance", (one, one + 1j), (one, one))
    assert not within_tolerance("tolerance", one.real, one)


# --- calls ----------------------------------------------------------------------------------------


def test_calls_by_a_plan_are_verified() -> None:
    plan = {
        "scipy.signal.stft": by_plan(accept="tolerance"),
        "scipy.spatial.distance.cdist": by_plan(accept="tolerance"),
    }
    distance = importlib.import_module("scipy.spatial.distance")
    with PipelineMigrator(plan, verify=1, strict=True) as migrator:
        signal.stft(X, nperseg=32)
        distance.cdist(X[:, None], X[:, None])
    assert [row.migrated for row in migrator.report().rows] == [1, 1]


def test_errors_are_the_functions_own() -> None:
    plan = {"scipy.signal.resample": by_plan(accept="tolerance")}
    with PipelineMigrator(plan), pytest.raises(ValueError, match="in \\('time', 'freq'\\)"):
        signal.resample(X, 60, domain="space")
    with PipelineMigrator(plan), pytest.raises(TypeError, match="missing 1 required"):
        signal.resample(X)


def strategy_of(name: str) -> TorchStrategy:
    module, _, function = name.rpartition(".")
    found = default_strategies().find(module, function)
    assert isinstance(found, TorchStrategy)
    return found


def compute(name: str, original: Any, *args: Any, kernel: Any = None, device: Any = None) -> Any:
    options = Options(kernel=kernel, accept="tolerance")
    return strategy_of(name).compute(device or host_cpu(), options, original, args, {})


def test_kernels_and_devices_that_are_none() -> None:
    with pytest.raises(RefusedCallError, match="no kernel 'triton'"):
        compute("scipy.signal.resample", signal.resample, X, 60, kernel="triton")
    gpu = FakeGpu()
    gpu.torch_device = None
    with pytest.raises(RefusedCallError, match="torch does not know the device"):
        compute("scipy.signal.resample", signal.resample, X, 60, device=gpu)


def test_other_versions_of_a_package() -> None:
    def newer(x: Any, N: Any = None, axis: Any = -1, *, fast: bool = False) -> Any:  # noqa: N803
        raise AssertionError

    def older(x: Any, N: Any = None) -> Any:  # noqa: N803
        raise AssertionError

    expected = signal.hilbert(X)
    np.testing.assert_allclose(compute("scipy.signal.hilbert", newer, X), expected)
    options = Options(accept="tolerance")
    with pytest.raises(RefusedCallError, match="fast is given"):
        strategy_of("scipy.signal.hilbert").compute(
            host_cpu(), options, newer, (X,), {"fast": True}
        )
    with pytest.raises(RefusedCallError, match="no axis is given"):
        compute("scipy.signal.hilbert", older, X)


# --- the catalogue --------------------------------------------------------------------------------


def test_nothing_is_imported_to_know_the_names() -> None:
    code = (
        "import sys\n"
        "from devicecore.migrate.strategies import catalog\n"
        "[catalog.strategies_of(package) for package in catalog.groups()]\n"
        "print({'torch', 'numpy', 'scipy'} & set(sys.modules))"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", [name for each in catalog.COMPUTED.values() for name in each])
def test_all_backends_are_there_and_take_what_their_functions_do(name: str) -> None:
    found = function_at(name)
    strategy = catalog.strategies_of(name.partition(".")[0])[name]
    assert isinstance(strategy, TorchStrategy)
    module, _, function = strategy.backend.partition(":")
    backend = getattr(importlib.import_module(f"devicecore.migrate.strategies.{module}"), function)
    wanted = [
        each.name
        for each in inspect.signature(backend).parameters.values()
        if each.default is each.empty and each.name != "call"
    ]
    assert set(wanted) <= inspect.signature(found).parameters.keys()


def function_at(name: str) -> Callable[..., Any]:
    """Return the function of that name, or skip."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found  # type: ignore[return-value]
    pytest.skip(f"{parts[0]} is not installed")


@pytest.mark.parametrize("name", sorted({*catalog.COMPUTED, *catalog.MOVED}))
def test_the_page_lists_every_function(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    functions = [*catalog.COMPUTED.get(name, ()), *catalog.MOVED.get(name, ())]
    missing = [each for each in functions if each.rpartition(".")[2] not in text]
    assert not missing
    assert name in text


# --- frames ---------------------------------------------------------------------------------------


def test_groups_that_frames_do_not_mean() -> None:
    registry = StrategyRegistry()
    registry.register_group("made_a", dict, in_frames=False, modules=["made_a.part"])
    registry.register_group("made_b", dict, modules=["made_b.part"])
    assert registry.packages == {"made_a", "made_b"}
    assert registry.packages_in_frames == {"made_b"}
    assert registry.modules_in_frames == {"made_b", "made_b.part"}
    registry.register_group("made_a", dict)
    assert registry.packages_in_frames == {"made_a", "made_b"}


def test_a_frame_leaves_scipy_as_it_is(made: Any) -> None:
    resample = signal.resample
    with PipelineMigrator({"made_a.plain": by_plan(accept="close")}):
        assert signal.resample is resample
        assert made.plain(1) == 6
