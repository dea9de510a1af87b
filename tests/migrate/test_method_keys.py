"""Keys of plans that name a method after a method of the same class."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from devicecore.migrate.plan import OptimizationPlan
from devicecore.migrate.targets import resolve

if TYPE_CHECKING:
    from pathlib import Path

METHODS = """
class Base:
    def inherited(self): pass
class Data(Base):
    def __getitem__(self, at): pass
    def preprocess(self): pass
    @staticmethod
    def fixed(): pass
    @classmethod
    def of_class(cls): pass
"""


@pytest.mark.parametrize("name", ["preprocess", "fixed", "of_class", "inherited"])
@pytest.mark.parametrize("between", ["", "**/"])
def test_a_method_after_a_method_of_its_class(
    name: str, between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made_methods.py").write_text(METHODS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_methods", raising=False)
    importlib.import_module("made_methods")
    key = f"made_methods.Data/__getitem__/{between}{name}"
    found = resolve(OptimizationPlan.load({key: "cpu"}))
    (located,) = found.entries
    path = ("made_methods:Data", "__getitem__", "made_methods:Data", name)
    assert located.key.matches(path)
    assert not located.key.matches(path[2:])
    del sys.modules["made_methods"]
