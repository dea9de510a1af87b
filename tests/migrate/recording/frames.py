"""For the tests of recorded frames: a function that a plan names, and what becomes of a call."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.migrate import PipelineMigrator
from devicecore.migrate.recording.lazy_array import LazyArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCOPED = {"device": "cpu", "kernel": "torch", "residency": "scoped"}


def frame(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function; plans name this one."""
    return function(*args, **kwargs)


KEY = f"{__name__}:frame"


@contextmanager
def recorded(
    plan: dict[str, Any] | None = None, **options: Any
) -> Iterator[tuple[Callable[..., Any], PipelineMigrator]]:
    """Yield what runs a function in a recorded frame, and the migrator."""
    with PipelineMigrator({KEY: SCOPED} if plan is None else plan, **options) as migrator:
        yield sys.modules[__name__].frame, migrator


def row(migrator: PipelineMigrator, name: str = "frame") -> Any:
    """Return the line of a report that is of a function."""
    # The report itself also looks for who holds originals, which takes long.
    sites = [each for each in migrator._sites.values() if each is not None]
    (found,) = [each.tally.row() for each in sites if each.tally.path.endswith(name)]
    return found


def image(seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (16, 20, 3), dtype=np.uint8)


def small(given: Any) -> Any:
    return cv2.resize(given, (8, 6))


def refuse(array: Any) -> None:
    """Do what cannot be done with anything but an array of numpy, once."""
    if type(array) is LazyArray:
        raise TypeError("refused")
