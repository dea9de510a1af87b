"""Running the calls that a plan names on another device, in a program that stays as it is."""

from devicecore.migrate.migrator import PipelineMigrator
from devicecore.migrate.plan import OptimizationPlan
from devicecore.migrate.processors import EnsureTensor, KeepOnDevice, PassThrough, SwapArgs, ToNumpy
from devicecore.migrate.registry import StrategyRegistry
from devicecore.migrate.strategies import default_strategies
from devicecore.migrate.strategy import MigrationStrategy, MoveInputStrategy

__all__ = [
    "EnsureTensor",
    "KeepOnDevice",
    "MigrationStrategy",
    "MoveInputStrategy",
    "OptimizationPlan",
    "PassThrough",
    "PipelineMigrator",
    "StrategyRegistry",
    "SwapArgs",
    "ToNumpy",
    "default_strategies",
]
