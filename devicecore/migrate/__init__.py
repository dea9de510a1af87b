"""Runs the calls that a plan names on another device, in an unchanged program."""

from typing import TYPE_CHECKING, Any

from devicecore.migrate.calls.processors import (
    EnsureTensor,
    KeepOnDevice,
    PassThrough,
    SwapArgs,
    ToNumpy,
)
from devicecore.migrate.calls.strategy import MigrationStrategy, MoveInputStrategy
from devicecore.migrate.migrator import PipelineMigrator
from devicecore.migrate.patching.injector import PatchInjector
from devicecore.migrate.patching.tracker import SparseContextTracker
from devicecore.migrate.patching.wrapper import UniversalWrapper
from devicecore.migrate.plan.optimization_plan import OptimizationPlan
from devicecore.migrate.strategies import default_strategies
from devicecore.migrate.strategies.registry import StrategyRegistry
from devicecore.optional import import_own, require

if TYPE_CHECKING:
    from devicecore.migrate.loader.device_loader import DeviceLoader


def __getattr__(name: str) -> Any:
    if name == "DeviceLoader":
        require("torch", extra="torch")
        return import_own("devicecore.migrate.loader.device_loader").DeviceLoader
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


__all__ = [
    "DeviceLoader",
    "EnsureTensor",
    "KeepOnDevice",
    "MigrationStrategy",
    "MoveInputStrategy",
    "OptimizationPlan",
    "PassThrough",
    "PatchInjector",
    "PipelineMigrator",
    "SparseContextTracker",
    "StrategyRegistry",
    "SwapArgs",
    "ToNumpy",
    "UniversalWrapper",
    "default_strategies",
]


def __dir__() -> list[str]:
    return sorted(__all__)
