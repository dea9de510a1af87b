"""For the tests of the migrator: modules that are made for one test."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.migrate.patching.patch_stack import PATCH_STACKS
from devicecore.migrate.patching.pickling import ORIGINALS
from devicecore.scope.imports import watch_imports
from tests.migrate.patching.patches import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that writes modules: ``write(made_a="x = 1")``, or from a dict.

    Their names begin with ``made_``. They can be imported until the test ends.
    """
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # rewritten within one second, for one

    def write_all(folders: dict[str, str] | None = None, **sources: str) -> None:
        for name, source in (sources | (folders or {})).items():
            assert name.startswith("made_")
            path = tmp_path.joinpath(f"{name}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
        importlib.invalidate_caches()

    yield write_all
    for name in [name for name in sys.modules if name.startswith("made_")]:
        del sys.modules[name]


@pytest.fixture
def made(write: Callable[..., None]) -> Any:
    """Return a module with functions and methods of all kinds."""
    write(made_a=SOURCE)
    return importlib.import_module("made_a")


@pytest.fixture
def no_trace() -> Iterator[None]:
    """Fail if a test leaves anything patched."""
    cv2 = importlib.import_module("cv2")
    watch_imports()  # stays for ever once a scope was entered, as some calls do
    finders, names = list(sys.meta_path), list(vars(cv2).items())
    yield
    assert PATCH_STACKS._all == []
    assert ORIGINALS._kept == {}
    assert sys.meta_path == finders
    assert list(vars(cv2).items()) == names
