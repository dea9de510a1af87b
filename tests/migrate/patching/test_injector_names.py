"""Names that were bound earlier are patched; whatever else holds a function is only reported."""

from __future__ import annotations

import gc
import importlib
import sys
import types
from typing import Any

import cv2
import pytest

from devicecore.migrate.patching.tracker import SparseContextTracker
from tests.migrate.patching.patches import contents, injector_of, run

pytestmark = pytest.mark.usefixtures("no_trace")


HOLDING = """
import cv2, functools
from cv2 import resize
from cv2 import resize as rs

in_list = [cv2.resize]
in_dict = {"key": cv2.resize}
in_tuple = (1, cv2.resize)
in_partial = functools.partial(cv2.resize, dsize=(2, 2))

def closure():
    held = cv2.resize
    return lambda: held
in_closure = closure()

def with_default(f=cv2.resize):
    return f

def with_keyword(*, f=cv2.resize):
    return f

class OfClass:
    f = cv2.resize

class OfInstance:
    def __init__(self):
        self.f = cv2.resize
instance = OfInstance()

@functools.lru_cache
def cached():
    return cv2.resize
cached()
"""

# The 13 ways: how each is read, and the text that reports it; none for one that is caught.
WAYS: dict[str, tuple[Any, str | None]] = {
    "attribute": (lambda m: m.cv2.resize, None),
    "from import": (lambda m: m.resize, None),
    "from import as": (lambda m: m.rs, None),
    "list": (lambda m: m.in_list[0], "item 0 of a list of 1"),
    "dict": (lambda m: m.in_dict["key"], "the key 'key' of a dict"),
    "tuple": (lambda m: m.in_tuple[1], "item 1 of a tuple of 2"),
    "partial": (lambda m: m.in_partial.func, "a functools.partial"),
    "closure": (lambda m: m.in_closure(), "the closure of closure.<locals>.<lambda>"),
    "default": (lambda m: m.with_default(), "a default of with_default"),
    "keyword default": (lambda m: m.with_keyword(), "the default 'f' of with_keyword"),
    "class": (lambda m: m.OfClass.f, "the attribute 'f' of the class made_h.OfClass"),
    "instance": (lambda m: m.instance.f, "the attribute 'f' of a made_h.OfInstance"),
    "cache": (lambda m: m.cached(), "a functools._lru_cache_wrapper"),
}


@pytest.fixture
def holding(write: Any) -> Any:
    gc.collect()  # what other tests had, or it would be reported, too
    write(made_h=HOLDING)
    return importlib.import_module("made_h")


@pytest.mark.parametrize("way", WAYS)
def test_the_ways_to_hold_a_function(holding: Any, way: str) -> None:
    read, text = WAYS[way]
    original = cv2.resize
    before = contents(holding)
    injector = injector_of((cv2, "resize"))
    with injector:
        held = injector.held_elsewhere()["cv2.resize"]
        if text is None:
            assert read(holding) is cv2.resize
            assert cv2.resize is not original
        else:
            assert read(holding) is original
            assert text in held
        assert not [each for each in held if "name 'rs'" in each]
    assert read(holding) is original
    assert contents(holding) == before


def test_our_own_things_are_not_reported(made: Any) -> None:
    tracker = SparseContextTracker()
    injector = injector_of((made, "plain"), (made.Model, "fixed"), (made.Model, "of_class"))
    injector.add(made, "later", lambda below: tracker.tracked(below, ("made_a:later",)))
    with injector, injector_of((made, "plain"), (made.Model, "fixed")):
        assert injector.held_elsewhere() == {}


def test_what_opencv_and_classes_leave_behind_is_not_reported(made: Any) -> None:
    gc.collect()

    def body(namespace: dict[str, Any]) -> None:
        namespace["method"] = made.Base.method
        namespace["__qualname__"] = "Other"
        namespaces.append(namespace)

    namespaces: list[dict[str, Any]] = []
    with injector_of((cv2, "resize"), (made.Base, "method")) as injector:
        # What `no_trace` compares with, and no more: neither OpenCV's own module nor its copy.
        assert injector.held_elsewhere() == {"cv2.resize": ["item 1 of a tuple of 2"]}
    other: Any = types.new_class("Other", exec_body=body)
    with injector_of((made.Base, "method")) as injector:
        expected = ["the attribute 'method' of the class made_o.Other"]
        other.__module__ = "made_o"
        namespaces[0]["__module__"] = "made_o"
        assert injector.held_elsewhere() == {"made_a.Base.method": expected}


def test_where_a_function_is_at_home_is_not_reported(write: Any) -> None:
    write(
        made_i="class Base:\n    def run(self): pass\nclass Heir(Base): pass\n",
        made_home="def turn(): pass\nturn.__module__ = 'made_public'\n",  # as NumPy's have it
        made_public="from made_home import turn\n",
    )
    made: Any = importlib.import_module("made_i")
    public = importlib.import_module("made_public")
    with injector_of((made.Heir, "run"), (public, "turn")) as injector:
        assert injector.held_elsewhere() == {}
        made.Heir.kept = [made.Base.run]
        assert injector.held_elsewhere() == {"made_i.Base.run": ["item 0 of a list of 1"]}


def test_lazy_objects_are_not_touched(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = []

    class Lazy(type(sys)):  # type: ignore[misc]
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            touched.append("__dict__")
            return {}

        def __getattribute__(self, name: str) -> Any:
            touched.append(name)
            return object.__getattribute__(self, name)

    class Odd:
        def __getattribute__(self, name: str) -> Any:
            touched.append(name)
            raise AttributeError(name)

    lazy, odd = Lazy("made_lazy"), Odd()
    touched.clear()
    monkeypatch.setitem(sys.modules, "made_lazy", lazy)
    monkeypatch.setitem(sys.modules, "made_odd", odd)
    monkeypatch.setitem(sys.modules, "made_none", None)
    injector = injector_of((cv2, "resize"))
    with injector:
        injector.held_elsewhere()
    assert touched == []


def test_private_names_of_the_main_program_are_left_alone(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import cv2
from cv2 import resize, resize as _resize
from devicecore.migrate.patching.injector import PatchInjector

original = [cv2.resize]
injector = PatchInjector()
injector.add(cv2, "resize", lambda below: lambda *args, **kwargs: below(*args, **kwargs))
injector.apply_all()
print(resize is cv2.resize, cv2.resize is original[0], _resize is original[0])
print([each for each in injector.held_elsewhere()["cv2.resize"] if "__main__" in each])
injector.restore_all()
print(resize is _resize is cv2.resize is original[0])
""")
    assert run(program) == [
        "True False True",
        "[\"the name '_resize' of the module __main__\"]",
        "True",
    ]


def test_names_that_were_bound_to_the_wrapper_get_the_original(made: Any, write: Any) -> None:
    write(made_c="from cv2 import resize\nfrom made_a import plain as p")
    original = cv2.resize, made.plain
    with injector_of((cv2, "resize"), (made, "plain")):
        importer = importlib.import_module("made_c")
        assert (importer.resize, importer.p) == (cv2.resize, made.plain)
        assert importer.resize is not original[0]
        made.alias = made.Model.forward
    assert (importer.resize, importer.p) == original


def test_a_name_that_its_module_gives_another_meaning(recwarn: pytest.WarningsRecorder) -> None:
    """The program's own affair: no warning, and what it has put there stays."""
    module = types.ModuleType("made_rebinding")
    vars(module)["resize"] = cv2.resize
    sys.modules["made_rebinding"] = module
    try:
        with injector_of((cv2, "resize")):
            assert vars(module)["resize"] is cv2.resize
            vars(module)["resize"] = len
        assert vars(module)["resize"] is len
    finally:
        del sys.modules["made_rebinding"]
    assert not recwarn.list
