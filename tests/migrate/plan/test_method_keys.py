"""Keys of plans that name a method after a method of the same class."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")

from devicecore.errors import PlanError
from devicecore.migrate import OptimizationPlan, PipelineMigrator
from devicecore.migrate.plan.targets import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

METHODS = """
import functools
class Base:
    def inherited(self): pass
class Data(Base):
    def __getitem__(self, at): pass
    def preprocess(self): pass
    @staticmethod
    def fixed(): pass
    @classmethod
    def of_class(cls): pass
    @property
    def size(self): return 1
    @functools.cached_property
    def kept(self): return 1
    part = functools.partialmethod(preprocess)
    LIMIT = 3
class Own(Data):
    def preprocess(self): return "own"
class Deeper(Own):
    def preprocess(self): return "deeper"
"""


@pytest.fixture
def made(write: Callable[..., None]) -> Any:
    write(made_methods=METHODS)
    return importlib.import_module("made_methods")


@pytest.mark.parametrize("name", ["preprocess", "fixed", "of_class", "inherited"])
@pytest.mark.parametrize("between", ["", "**/"])
def test_a_method_after_a_method_of_its_class(name: str, between: str, made: Any) -> None:
    key = f"made_methods.Data/__getitem__/{between}{name}"
    located, *overrides = resolve(OptimizationPlan.load({key: "cpu"})).entries
    path = ("made_methods:Data", "__getitem__", "made_methods:Data", name)
    assert located.key.matches(path)
    assert not located.key.matches(path[2:])
    owners = sorted(each.key.pattern[-2] for each in overrides)
    expected = ["made_methods:Deeper", "made_methods:Own"] if name == "preprocess" else []
    assert owners == expected


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("Data/size", "property"),
        ("Data/__getitem__/size", "property"),
        ("Data/__getitem__/**/size", "property"),
        ("Data/kept", "cached_property"),
        ("Own/__getitem__/kept", "cached_property"),
        ("Data/__getitem__/part", "partialmethod"),
        ("Data/__getitem__/LIMIT/cv2.resize", "int"),
    ],
)
def test_an_attribute_that_is_no_method(key: str, kind: str, made: Any) -> None:
    how = {"device": "cpu", "kernel": "torch"}
    with pytest.raises(
        PlanError, match=rf"'made_methods\.{re.escape(key)}': .* is of type {kind}, no function"
    ):
        PipelineMigrator({f"made_methods.{key}": how}).activate()
    assert not hasattr(made.Data.__getitem__, "__wrapped__")


@pytest.mark.parametrize("cls", ["Data", "Own", "Deeper"])
@pytest.mark.parametrize("name", ["preprocess", "inherited", "fixed", "of_class"])
def test_what_self_calls_is_migrated_whatever_its_class(cls: str, name: str, made: Any) -> None:
    made.Data.__getitem__ = lambda self, at: getattr(self, name)()
    made.Data.__getitem__.__qualname__ = "Data.__getitem__"
    made.Data.__getitem__.__module__ = "made_methods"
    item = getattr(made, cls)()
    expected = item[0]
    key = f"made_methods.Data/__getitem__/{name}"
    with PipelineMigrator({key: {"device": "cpu", "kernel": "torch"}}) as migrator:
        assert item[0] == expected
    (row,) = migrator.report().rows
    assert row.calls == 1
    assert row.path.endswith(f"/{name}")
    assert migrator.report().unmatched == []


@pytest.mark.parametrize("name", ["Reference", "Ledger", "OptimizationPlan", "Thread", "Random"])
def test_a_bare_name_is_the_programs_class(name: str, write: Callable[..., None]) -> None:
    """Not one of devicecore's own, and before one of the standard library's."""
    write(made_names=f"class {name}:\n    def load(self): pass")
    key = f"{name}/load"
    if name not in {"Thread", "Random"}:
        found = resolve(OptimizationPlan.load({key: "cpu"}))
        assert [each.entry.key.pattern[0] for each in found.pending] == [name]
    importlib.import_module("made_names")
    (located,) = resolve(OptimizationPlan.load({key: "cpu"})).entries
    assert located.key.pattern == (f"made_names:{name}", "load")


@pytest.mark.parametrize(
    ("key", "reason", "fix"),
    [
        ("**/preprocess", "instances of '{}' cannot be called", "{}/preprocess"),
        ("**/preprocess/cv2.flip", "instances of '{}' cannot be called", "{}/preprocess/cv2.flip"),
        ("*/preprocess", "a * after the class '{}' is any of its methods", "{}/preprocess"),
        ("**", "instances of '{}' cannot be called; name a method of it", ""),
    ],
)
def test_a_class_whose_method_is_left_out(key: str, reason: str, fix: str, made: Any) -> None:
    with pytest.raises(PlanError) as caught:
        resolve(OptimizationPlan.load({f"made_methods.Data/{key}": "cpu"}))
    text = str(caught.value)
    assert reason.format("made_methods:Data") in text
    rest = key.lstrip("*/")
    ways = f"name a method of it, as in 'Data/__getitem__/**/{rest}' or '{fix.format('Data')}'"
    assert text.endswith(ways if fix else "name a method of it")
