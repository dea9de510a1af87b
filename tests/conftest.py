"""For all tests: what hypothesis may take for a failure, a cache of one's own, a forked child."""

from __future__ import annotations

import os
import pickle
import select
import signal
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A busy machine is slow, which is no failure.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

FORK_TIMEOUT_S = 60.0


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder that this test has for itself."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def in_fork() -> Callable[[Callable[[], Any]], Any]:
    """Return a function that runs another one in a forked child, and returns what that returns.

    An error in the child is a failure here, and so is a child that hangs.
    """
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    return _in_fork


def _in_fork(function: Callable[[], Any]) -> Any:
    source, sink = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of a fork beside threads, which is what these tests are about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            answer: tuple[bool, Any] = (True, function())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent shall see it
            answer = (False, f"{type(error).__name__}: {error}")
        os.write(sink, pickle.dumps(answer))
        os._exit(0)
    os.close(sink)
    try:
        if not select.select([source], [], [], FORK_TIMEOUT_S)[0]:
            pytest.fail("the forked child hangs")
        with os.fdopen(source, "rb", closefd=False) as pipe:
            fine, result = pickle.loads(pipe.read())
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(source)
    assert fine, result
    return result
