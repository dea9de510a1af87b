"""Strategies that devicecore brings, grouped by library."""

from __future__ import annotations

from devicecore.migrate.strategies import catalog, opencv
from devicecore.migrate.strategies.registry import StrategyRegistry


def default_strategies() -> StrategyRegistry:
    """Return a new registry of what devicecore can compute; nothing is imported for it yet."""
    registry = StrategyRegistry()
    registry.register_group("cv2", opencv.strategies)
    for package, group in catalog.groups().items():
        in_frames = package in catalog.IN_FRAMES
        modules = catalog.MODULES.get(package, ())
        registry.register_group(package, group, in_frames=in_frames, modules=modules)
    return registry


__all__ = ["default_strategies"]
