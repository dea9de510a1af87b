"""OpenCV's functions replaced by ours on torch's kernels, each call compared with OpenCV's answer.

As a plug-in of pytest (``-p benchmarks.intercepting``) it replaces them in a whole test run, and
each process writes what it counted into the folder that ``INTERCEPTED`` names.
"""

from __future__ import annotations

import functools
import json
import os
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore import cv
from devicecore.cv import catalog
from devicecore.cv.native import original
from devicecore.cv.quarantine import keeps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.kernels import Exactness

# What is accepted; calls with a looser promise are left to OpenCV.
ACCEPTED: Exactness = "tolerance"
HOST = "host"
FOLDER = "INTERCEPTED"


class Tally:
    """What became of the calls.

    Attributes:
        promises: How many calls of each function had which promise; ``"host"`` for OpenCV's own
            answers, ``"error"`` for calls that OpenCV refuses.
        wrong: The calls whose results were not as promised.
        differing: How many values of exact, and of other, results differ from OpenCV's.
        host: How many calls of each function, for each kind of argument, OpenCV answered.
    """

    def __init__(self) -> None:
        self.promises: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []
        self.differing: Counter[str] = Counter()
        self.host: Counter[str] = Counter()


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value


def _written(name: str, args: Any, kwargs: Any) -> str:
    def written(value: Any) -> str:
        if isinstance(value, np.ndarray) and value.size > 1:
            return f"{value.dtype}{list(value.shape)}"
        if isinstance(value, (list, tuple)) and any(isinstance(each, np.ndarray) for each in value):
            return f"[{', '.join(map(written, value))}]"
        return "float" if isinstance(value, float) else repr(value)

    named = [f"{key}={written(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join([*map(written, args), *named])})"


def _differing(found: Any, expected: Any) -> int:
    if isinstance(expected, (list, tuple)):
        return sum(_differing(*pair) for pair in zip(found, expected, strict=True))
    found, expected = np.asarray(found), np.asarray(expected)
    return int((~np.isclose(found, expected, rtol=0, atol=0, equal_nan=True)).sum())


def _replacement(name: str, tally: Tally, inside: threading.local) -> Callable[..., Any]:
    theirs, ours = original(name), getattr(cv, name)
    operation = catalog.find(name, "torch")

    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "busy", False):  # our own kernels ask OpenCV, too
            return theirs(*args, **kwargs)
        inside.busy = True
        try:
            return _compared(*args, **kwargs)
        finally:
            inside.busy = False

    def _compared(*args: Any, **kwargs: Any) -> Any:
        plan = None if operation is None else operation.plan(args, kwargs)
        try:
            expected = theirs(*_copied(args), **_copied(kwargs))
        except Exception:
            tally.promises[name, "error"] += 1
            raise
        if plan is None or plan.promise == "close":
            tally.promises[name, HOST] += 1
            tally.host[_written(name, args, kwargs)] += 1
            return theirs(*args, **kwargs)
        tally.promises[name, plan.promise] += 1
        with cv.using("torch"), cv.accept(ACCEPTED):
            found = ours(*args, **kwargs)
        tally.differing[plan.promise] += _differing(found, expected)
        if not keeps(plan.promise, found, expected):
            tally.wrong.append(_written(name, args, kwargs))
        return found

    return functools.wraps(theirs)(call)


@contextmanager
def intercepted() -> Iterator[Tally]:
    """Replace OpenCV's functions inside the ``with`` block; gives what is counted."""
    tally, inside = Tally(), threading.local()
    names = (*catalog.TORCH, *catalog.HOST)  # one is a method's
    before = {name: getattr(cv2, name) for name in names if hasattr(cv2, name)}
    for name in before:
        setattr(cv2, name, _replacement(name, tally, inside))
    try:
        yield tally
    finally:
        for name, function in before.items():
            setattr(cv2, name, function)


def pytest_configure(config: Any) -> None:
    """Replace the functions before any test is imported."""
    import torch  # one thread each: test processes share the cores

    torch.set_num_threads(1)
    block = intercepted()
    tally = block.__enter__()

    def finish() -> None:
        block.__exit__(None, None, None)
        counts = {
            "promises": [[*key, count] for key, count in sorted(tally.promises.items())],
            "wrong": tally.wrong,
            "differing": dict(tally.differing),
            "host": dict(tally.host),
        }
        path = Path(os.environ[FOLDER], f"{os.getpid()}.json")
        path.write_text(json.dumps(counts), encoding="utf-8")

    config.add_cleanup(finish)
