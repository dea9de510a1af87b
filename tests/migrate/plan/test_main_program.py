"""Main programs that say when a function which a plan names has been defined in them."""

from __future__ import annotations

import ast
import dis
import logging
import traceback
import warnings
from types import CodeType
from typing import Any

import pytest

from devicecore.migrate import OptimizationPlan
from devicecore.migrate.plan.main_program import announce_definitions, find_names


def seen(source: str, *names: str) -> list[list[str]]:
    """Return which of *names* a program had at each call."""
    module: dict[str, Any] = {"__name__": "__main__"}
    found: list[list[str]] = []

    def look(made: frozenset[str]) -> None:
        found.append([name for name in names if name in module])
        assert made <= {*found[-1]}
        assert made or "import *" in source

    exec(announce_definitions(plain(source), source, frozenset(names), look), module)
    return found


def plain(source: bytes | str) -> CodeType:
    return compile(source, "program.py", "exec", dont_inherit=True)


@pytest.mark.parametrize(
    "source",
    [
        "def f(): pass",
        "async def f(): pass",
        "class f: pass",
        "def f(): pass\ndef g(): pass",
        "@staticmethod\ndef f(): pass",
        "if 1:\n def f(): pass",
        "if 0: pass\nelse:\n def f(): pass",
        "if 0: pass\nelif 1:\n if 1:\n  def f(): pass",
        "try:\n def f(): pass\nexcept OSError: pass",
        "try: 1 / 0\nexcept OSError: pass\nexcept ArithmeticError:\n def f(): pass",
        "try: pass\nexcept OSError: pass\nelse:\n def f(): pass",
        "try: pass\nfinally:\n def f(): pass",
        "try: raise ExceptionGroup('', [OSError()])\nexcept* OSError:\n def f(): pass",
        "for _ in [1]:\n def f(): pass",
        "for _ in []: pass\nelse:\n def f(): pass",
        "while True:\n def f(): pass\n break",
        "import contextlib\nwith contextlib.nullcontext():\n def f(): pass",
        "match 1:\n case 2: pass\n case 1:\n  def f(): pass",
        "from math import sqrt as f",
        "import math as f",
        "from math import sin, sqrt as f",
        "'doc'\nfrom __future__ import annotations\ndef f(): pass",
    ],
)
def test_a_call_after_each_way_to_define_a_name(source: str) -> None:
    assert seen(source, "f") == [["f"]]


@pytest.mark.parametrize(
    "source",
    [
        "def g(): pass",
        "def g():\n def f(): pass\ng()",
        "class G:\n def f(self): pass",
        "f = 1",
        "import math",
        "from __future__ import annotations as f",
        "",
    ],
)
def test_nothing_changes_elsewhere(source: str) -> None:
    code = plain(source)
    assert announce_definitions(code, source, frozenset({"f"}), print) is code
    assert seen(source, "f") == []


def test_names_that_come_in_several_steps() -> None:
    source = "from __future__ import annotations\ndef f(): pass\nfrom math import *\nclass G: pass"
    assert seen(source, "annotations", "f", "sqrt", "G") == [
        ["annotations", "f"],
        ["annotations", "f", "sqrt"],
        ["annotations", "f", "sqrt", "G"],
    ]


def test_a_program_keeps_its_names_and_lines() -> None:
    source = '"""Doc."""\n\n\ndef f():\n    """Of f."""\n    return 1 / 0\n\n\nx = 1\nf()\n'
    module: dict[str, Any] = {}
    code = announce_definitions(plain(source), source, frozenset({"f"}), len)
    with pytest.raises(ZeroDivisionError) as caught:
        exec(code, module)
    lines = [(each.name, each.lineno) for each in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[1:] == [("<module>", 10), ("f", 6)]
    assert sorted(module) == ["__builtins__", "__doc__", "f", "x"]
    assert module["__doc__"] == "Doc."
    first, second = (
        {line for _, line in dis.findlinestarts(each)} for each in (code, plain(source))
    )
    assert first == second
    of_f, plain_f = (
        next(each for each in whole.co_consts if isinstance(each, CodeType))
        for whole in (code, plain(source))
    )
    assert of_f == plain_f


def test_bytes_of_any_encoding() -> None:
    source = "# coding: latin-1\nname = 'é'\ndef f(): pass\n".encode("latin-1")
    module: dict[str, Any] = {}
    calls: list[frozenset[str]] = []
    exec(announce_definitions(plain(source), source, frozenset({"f"}), calls.append), module)
    assert module["name"] == "é"
    assert calls == [{"f"}]


def test_what_the_compiler_warns_of_is_said_once() -> None:
    source = "def f(): return 1 is 1"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        announce_definitions(plain(source), source, frozenset({"f"}), print)
    assert len(said) == 1


def test_a_program_too_deep_for_a_tree_runs_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    source = f"def f(): pass\nx = {'+'.join(['1'] * 2500)}"
    code = plain(source)
    tree: Any = compile(source, "", "exec", ast.PyCF_ONLY_AST)
    try:
        compile(tree, "", "exec")
    except RecursionError:
        with caplog.at_level(logging.WARNING, "devicecore"):
            assert announce_definitions(code, source, frozenset({"f"}), print) is code
        assert "program.py is too deep" in caplog.text
    else:  # this Python takes it
        assert announce_definitions(code, source, frozenset({"f"}), print) is not code


def test_names_of_a_plan() -> None:
    keys = ["**/Data/__getitem__/cv2.resize", "__main__:Model.forward", "*/f", "package.part:g"]
    plan = OptimizationPlan.load(dict.fromkeys(keys, "cpu"))
    assert find_names(plan) >= {"Data", "Model", "f"}
    assert not find_names(plan) & {"*", "**", "__main__", "forward"}
