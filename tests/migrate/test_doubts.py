"""Warnings about keys that nothing can be for, when a plan begins to hold."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after cv2

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH = {"device": "cpu", "kernel": "torch"}
NO_CLASS = "neither the program nor a module has a class"
SOURCE = """
class MadeData:
    def __getitem__(self, at): return self.prepare(at)
    def prepare(self, at): return at
"""


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("cvv2.resize", "there is no package 'cvv2'; did you mean 'cv2.resize'?"),
        ("Data/get/**/cvv2:resize", "no package 'cvv2'; did you mean 'Data/get/**/cv2:resize'?"),
        ("no_such_package_at_all:f", "there is no package 'no_such_package_at_all'"),
        ("resize", f"{NO_CLASS} 'resize' so far; did you mean 'cv2.resize'"),
        ("copyMakeBordr", f"{NO_CLASS} 'copyMakeBordr' so far; did you mean 'cv2.copyMakeBorder'?"),
        ("cvv2", f"{NO_CLASS} 'cvv2' so far; did you mean 'cv2'?"),
        ("MadeDta/__getitem__/cv2.flip", f"{NO_CLASS} 'MadeDta' so far; did you mean 'MadeData'"),
        ("made_data.MadeData/__getitem__/prepar", "did you mean 'prepare'"),
        ("qqqqzzzz", f"{NO_CLASS} 'qqqqzzzz' so far"),
    ],
)
def test_a_key_that_nothing_can_be_for(
    key: str, said: str, write: Callable[..., None], no_trace: None
) -> None:
    if key.startswith("Data"):
        write(made_data=SOURCE.replace("MadeData", "Data").replace("__getitem__", "get"))
    else:
        write(made_data=SOURCE)
    importlib.import_module("made_data")
    migrator = PipelineMigrator({key: TORCH, "cv2.flip": TORCH})
    for begin in (migrator.activate, migrator.__enter__):
        with pytest.warns(RuntimeWarning) as caught:
            begin()
        assert len(caught) == 1
        assert f"the plan: the key {key!r} is for no call: " in str(caught[0].message)
        assert said in str(caught[0].message)
        assert caught[0].filename == __file__
        migrator.activate()  # it is said once
        migrator.deactivate()
        migrator.deactivate()
    with pytest.raises(RuntimeWarning):  # as this configuration of warnings makes of it
        migrator.activate()
    assert not hasattr(cv2.flip, "__wrapped__")


def test_what_may_still_come(write: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    write(made_later="def f(): pass")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    plan = dict.fromkeys(("colorsys.rgb_to_hsv", "made_later.f", "made_later:Late/run"), TORCH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with PipelineMigrator(plan):
            pass
        monkeypatch.setenv("DEVICECORE_MIGRATE", "off")
        with PipelineMigrator({"resize": TORCH}):
            pass


def test_it_names_the_line_of_the_block() -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    with pytest.warns(RuntimeWarning) as caught, PipelineMigrator({"cvv2.flip": TORCH}):
        pass
    assert caught[0].lineno == line
