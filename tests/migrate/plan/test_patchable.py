"""Plans that name what no wrapper can stand in for, and what is more than a function."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import PlanError  # noqa: E402 - after cv2
from devicecore.migrate import PipelineMigrator  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH = {"device": "cpu", "kernel": "torch"}
IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
BUILTIN = "cannot be replaced: it is a builtin"
OF_C = "is a class written in C, whose methods are fixed; name a function of the program that"
SOURCE = """
import functools, operator

@functools.lru_cache
def cached(x): return x
class Turn:
    kind = "turn"
    def __init__(self): self.count = 0
    def __call__(self, x): self.count += 1; return x
    def used(self): return self.count
    @staticmethod
    def name(): return "turn"
    made = staticmethod(int)
    Inner = type("Inner", (), {})
turn = Turn()
twice = functools.partial(operator.mul, 2)
LIMIT = 3
"""


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("functools.partial", f"'functools:partial.__call__' cannot be replaced: 'partial' {OF_C}"),
        (
            "weakref.ref",
            f"'weakref:ReferenceType.__call__' cannot be replaced: 'ReferenceType' {OF_C}",
        ),
        ("operator.itemgetter", f"'itemgetter' {OF_C}"),
        ("contextvars.ContextVar/get", f"'ContextVar' {OF_C}"),
        ("numpy.ndarray/sum", f"'ndarray' {OF_C}"),
        ("builtins.list/sort", f"'list' {OF_C}"),
        ("builtins.type", f"'type' {OF_C}"),
        ("builtins.len", f"'builtins:len' {BUILTIN}"),
        ("builtins:isinstance", f"'builtins:isinstance' {BUILTIN}"),
        ("builtins.__import__", f"'builtins:__import__' {BUILTIN}"),
        ("io.open", f"'io:open' {BUILTIN}"),
        ("made_kinds.f/builtins.print", f"'builtins:print' {BUILTIN}"),
        (
            "devicecore.migrate.patching.tracker.SparseContextTracker/at",
            "it is a part of devicecore itself",
        ),
        ("devicecore.resolution:resolve", "it is a part of devicecore itself"),
        ("math.pi", "'math:pi' is of type float, no function"),
        ("sys.modules", "'sys:modules' is of type dict, no function"),
        ("json", "no function of a module 'json' has a strategy"),
        ("made_kinds.LIMIT/cv2.flip", "'made_kinds:LIMIT' is of type int, no function"),
        ("made_kinds.Turn/made", "'made_kinds:Turn.made' is of type type, no function"),
        ("functools.partialmethod/__class_getitem__", "is of type type, no function"),
        ("numpy.add", "it is a ufunc"),
        ("collections.OrderedDict", "instances of 'collections:OrderedDict' cannot be called"),
    ],
)
def test_what_nobody_can_replace(
    key: str, said: str, write: Callable[..., None], no_trace: None
) -> None:
    write(made_kinds=SOURCE + "def f(): pass")
    importlib.import_module("made_kinds")
    with pytest.raises(PlanError) as caught:
        PipelineMigrator({"cv2.flip": TORCH, key: TORCH}).activate()
    assert said in str(caught.value)
    flipped = cv2.flip(IMAGE, 1)  # all is as before, and a plan without it works
    with PipelineMigrator({"cv2.flip": TORCH}) as migrator:
        assert (cv2.flip(IMAGE, 1) == flipped).all()
    assert [row.migrated for row in migrator.report().rows] == [1]


def test_what_is_more_than_a_function_keeps_its_methods(
    write: Callable[..., None], no_trace: None
) -> None:
    write(made_kinds=SOURCE)
    made: Any = importlib.import_module("made_kinds")
    names = ("cached", "turn", "twice", "Turn")
    with PipelineMigrator({f"made_kinds.{name}": TORCH for name in names}) as migrator:
        assert (made.cached(3), made.cached(3), made.twice(4), made.turn(5)) == (3, 3, 8, 5)
        assert made.cached.cache_info().hits == 1
        made.cached.cache_clear()
        assert made.turn.used() == 1
        assert made.turn.name() == "turn"
    assert made.cached.cache_info().hits == 0
    assert {row.path for row in migrator.report().rows} >= {"made_kinds:cached", "made_kinds:turn"}
