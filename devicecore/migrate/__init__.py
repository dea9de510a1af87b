"""Running the calls that a plan names on another device, in a program that stays as it is."""

from typing import TYPE_CHECKING, Any

from devicecore.migrate.injector import PatchInjector
from devicecore.migrate.migrator import PipelineMigrator
from devicecore.migrate.plan import OptimizationPlan
from devicecore.migrate.processors import EnsureTensor, KeepOnDevice, PassThrough, SwapArgs, ToNumpy
from devicecore.migrate.registry import StrategyRegistry
from devicecore.migrate.strategies import default_strategies
from devicecore.migrate.strategy import MigrationStrategy, MoveInputStrategy
from devicecore.migrate.tracker import SparseContextTracker
from devicecore.migrate.wrapper import UniversalWrapper
from devicecore.optional import import_own, require

if TYPE_CHECKING:
    from devicecore.migrate.lifted.loader import DeviceLoader


def __getattr__(name: str) -> Any:
    if name == "DeviceLoader":
        require("torch", extra="torch")
        return import_own("devicecore.migrate.lifted.loader").DeviceLoader
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
