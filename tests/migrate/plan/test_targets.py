"""Targets: how a plan's spellings find functions of loaded modules, and import nothing."""

from __future__ import annotations

import builtins
import collections
import importlib
import json
import math
import os
import sys
import threading
from collections.abc import Callable
from importlib.util import LazyLoader, find_spec, module_from_spec
from textwrap import dedent
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import cv2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devicecore.errors.lookup import PlanError
from devicecore.migrate.plan.keys import Keys
from devicecore.migrate.plan.optimization_plan import OptimizationPlan
from devicecore.migrate.plan.targets import PatchTarget, Resolved, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Make = Callable[[str, str], None]
SHOP = """
    from math import sqrt
    from shop.tools import cut, Tool as Renamed, Module
    import shop.tools as helpers

    LIMIT = 3
    class Compose:
        def __call__(self, image): return image
        fixed = staticmethod(lambda: None)
        made = classmethod(lambda cls: cls())
        size = property(lambda self: 1)
        class Inner:
            def run(self): pass
    class Longer(Compose): pass
    class Net(Module):
        def forward(self, x): return x
    class Deeper(Net): pass
    class Own(Module):
        def __call__(self, x): return x
        def forward(self, x): return x
    class Silent: pass
    run = Compose.Inner.run
    pinch = lambda image: image
"""
TOOLS = """
    def cut(image): return image
    class Tool:
        def __call__(self): pass
    class Module:
        def __call__(self, x): return self.forward(x)
        def forward(self, x): raise NotImplementedError
    class Twice: pass
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Return a function that writes a module, which is forgotten afterwards."""
    written: set[str] = set()
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> None:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        written.add(name.partition(".")[0])
        importlib.invalidate_caches()

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] in written]:
        del sys.modules[name]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


@pytest.fixture
def shop(make: Make, main: ModuleType) -> Any:
    make("shop.__init__", SHOP)
    make("shop.tools", TOOLS)
    return importlib.import_module("shop")


def defined(module: ModuleType, text: str) -> None:
    exec(dedent(text), module.__dict__)


def resolved(*keys: str, allow: tuple[str, ...] = ()) -> Resolved:
    return resolve(OptimizationPlan.load(dict.fromkeys(keys, "cpu")), allow)


def canonical(key: str) -> str:
    found = resolved(key)
    assert found.pending == ()
    (entry,) = found.entries
    assert str(entry.entry.key) == key
    return str(entry.key)


def waits_for(key: str, allow: tuple[str, ...] = ()) -> tuple[str, bool]:
    found = resolved(key, allow=allow)
    assert (found.entries, found.targets) == ((), ())
    return found.pending[0].module, found.pending[0].is_loaded


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("shop.tools:cut", "shop.tools:cut"),
        ("shop.tools.cut", "shop.tools:cut"),
        ("shop.cut", "shop.tools:cut"),
        ("shop:cut", "shop.tools:cut"),
        ("shop.helpers.cut", "shop.tools:cut"),
        ("shop:helpers.cut", "shop.tools:cut"),
        ("shop.pinch", "shop:pinch"),
        ("shop.sqrt", "math:sqrt"),
        ("shop.run", "shop:Compose.Inner/run"),
        ("shop.Compose", "shop:Compose/__call__"),
        ("shop.Renamed", "shop.tools:Tool/__call__"),
        ("shop.Renamed/__call__", "shop.tools:Tool/__call__"),
        ("shop:Compose/fixed", "shop:Compose/fixed"),
        ("shop.Compose.fixed", "shop:Compose/fixed"),
        ("shop:Compose.made", "shop:Compose/made"),
        ("shop.Longer", "shop:Longer/__call__"),
        ("shop.Longer.made", "shop:Longer/made"),
        ("shop.Compose.Inner/run", "shop:Compose.Inner/run"),
        ("shop.Module", "shop.tools:Module/__call__"),
        ("shop.Net", "shop:Net/forward"),
        ("shop.Deeper", "shop:Deeper/forward"),
        ("shop.Own", "shop:Own/__call__"),
        ("Deeper", "shop:Deeper/forward"),
        ("Tool/__call__", "shop.tools:Tool/__call__"),
        ("shop.Compose/shop.cut", "shop:Compose/__call__/shop.tools:cut"),
        ("shop.Compose/**/shop.cut", "shop:Compose/__call__/**/shop.tools:cut"),
        ("shop.Compose/made/*/shop.cut/**", "shop:Compose/made/*/shop.tools:cut/**"),
        ("cv2.resize", "cv2:resize"),
        ("cv2:CLAHE/apply", "cv2:CLAHE/apply"),
    ],
)
def test_a_spelling_finds_a_function(spelled: str, expected: str, shop: Any) -> None:
    assert canonical(spelled) == expected


def test_names_of_the_main_program(shop: Any, main: ModuleType) -> None:
    defined(
        main,
        """
        import shop as s
        from shop import Renamed as Tool, cut
        def preprocess(image): pass
        class Dataset:
            def __getitem__(self, index): pass
        class Deeper: # another one than that of the shop
            def __call__(self): pass
        """,
    )
    assert canonical("preprocess") == "__main__:preprocess"
    assert canonical("__main__:preprocess") == "__main__:preprocess"
    assert canonical("cut") == "shop.tools:cut"
    assert canonical("s.pinch") == "shop:pinch"
    assert canonical("Dataset.__getitem__") == "__main__:Dataset/__getitem__"
    assert canonical("Deeper") == "__main__:Deeper/__call__"
    assert canonical("Tool") == "shop.tools:Tool/__call__"
    whole = "__main__:Dataset/__getitem__/__main__:preprocess/cv2:resize"
    assert canonical("Dataset/__getitem__/preprocess/cv2.resize") == whole


def test_the_main_program_of_a_spawned_child_is_the_same(
    main: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__mp_main__", main)
    main.__name__ = "__mp_main__"
    defined(main, "def preprocess(): pass\nclass Dataset:\n  def load(self): pass")
    assert canonical("preprocess") == "__main__:preprocess"
    assert canonical("Dataset/load") == "__main__:Dataset/load"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("shop.cutt", "the module 'shop' has no 'cutt'; near are 'cut'"),
        ("shop:tols.cut", "the module 'shop' has no 'tols'; near are 'tools'"),
        ("shop.tols.cut", "the module 'shop' has no 'tols'; near are 'tools'"),
        ("shop.tols:cut", "the module 'shop' has no 'tols'; near are 'tools'"),
        ("shop.zzz", "the module 'shop' has no 'zzz'"),
        ("shop.Longer/mad", "the class 'shop:Longer' has no 'mad'; near are 'made'"),
        ("shop.Compose/cut", "the class 'shop:Compose' has no 'cut'"),
        ("shop.LIMIT", "'shop:LIMIT' is of type int, no function"),
        ("shop.tools", "no function of a module 'shop.tools' has a strategy"),
        ("shop.tools/cut", "'shop.tools' is a module, which is no frame; write shop.tools.cut"),
        ("shop.Compose/size", "'shop:Compose.size' is of type property, no function"),
        ("shop.cut.x", "'shop.tools:cut' is of type function; only modules and classes can hold"),
        ("shop.Silent", "instances of 'shop:Silent' cannot be called; name a method of it"),
        (
            "shop.Compose/*",
            (
                "a * after the class 'shop:Compose' is any of its methods, and only named ones are "
                "patched; name a method of it"
            ),
        ),
        ("shop.Silent/**/made", "instances of 'shop:Silent' cannot be called; name a method of it"),
        ("Twice/run", "there are 2 classes 'Twice'; write one of shop.tools:Twice, other:Twice"),
    ],
)
def test_what_cannot_be_found_is_said_with_its_line(
    key: str, message: str, shop: Any, make: Make, tmp_path: Path
) -> None:
    make("other", "from shop.tools import cut\nclass Twice: pass")
    importlib.import_module("other")
    file = tmp_path / "plan.json"
    file.write_text(f'{{"cv2.resize": "cpu",\n"{key}": "cpu"}}')
    with pytest.raises(PlanError) as caught:
        resolve(OptimizationPlan.load(file))
    assert str(caught.value).startswith(f"{file}, line 2, '{key}': {message}")
    assert (caught.value.line, caught.value.key) == (2, key)


def test_two_spellings_of_one_function_are_a_tie(shop: Any) -> None:
    with pytest.raises(PlanError, match=r"'shop\.tools\.cut': it and 'shop\.cut' both match"):
        resolved("shop.cut", "shop.tools.cut")


def test_a_function_that_knows_no_module_is_one_target(make: Make, main: ModuleType) -> None:
    assert cast("Any", cv2.resize).__module__ is None
    make("borrower", "from cv2 import resize, resize as rs")
    importlib.import_module("borrower")
    found = resolved("cv2.resize", "borrower.rs/cv2.blur")
    assert [str(entry.key) for entry in found.entries] == ["cv2:resize", "cv2:resize/cv2:blur"]
    assert [str(wanted.target.qualname) for wanted in found.targets] == ["resize", "blur"]


def test_each_target_is_there_once_with_what_asks_for_it(shop: Any) -> None:
    found = resolved("shop.cut", "shop.Net/shop.cut", "shop.cut/**/cv2.blur")
    first, second, third = (entry.entry for entry in found.entries)
    wanted = {each.target: (each.leaf_of, each.inner_of) for each in found.targets}
    assert wanted == {
        PatchTarget("shop.tools", "cut"): ((first, second), (third,)),
        PatchTarget("shop", "Net.forward"): ((), (second,)),
        PatchTarget("cv2", "blur"): ((third,), ()),
    }


def test_a_final_wildcard_matches_the_frame_or_what_runs_inside(shop: Any) -> None:
    assert len(resolved("shop.cut/**").targets[0].leaf_of) == 1
    assert len(resolved("shop.cut/*").targets[0].inner_of) == 1


def test_what_was_found_is_found_again_by_paths(shop: Any, main: ModuleType) -> None:
    defined(main, "class Dataset:\n  def __getitem__(self, index): pass")
    found = resolved("Dataset/__getitem__", "shop.cut")
    keys = Keys(found.entries)
    inside = (PatchTarget("__main__", "Dataset.__getitem__").canonical, ("cv2:blur",))
    assert keys.find(inside) is found.entries[0]
    assert keys.find((PatchTarget("shop.tools", "cut").canonical,)) is found.entries[1]


def test_holders(shop: Any) -> None:
    assert PatchTarget("shop.tools", "cut").holder() == (sys.modules["shop.tools"], "cut")
    assert PatchTarget("cv2", "resize").holder() == (cv2, "resize")
    assert PatchTarget("math", "sqrt").holder() == (math, "sqrt")
    assert PatchTarget("shop", "Compose.Inner.run").holder() == (shop.Compose.Inner, "run")
    assert PatchTarget("shop", "Longer.fixed").holder() == (shop.Longer, "fixed")
    assert PatchTarget("cv2", "CLAHE.apply").holder() == (cv2.CLAHE, "apply")


@pytest.mark.parametrize("name", ["shop:gone", "shop:Gone.run", "no_such_module:f"])
def test_a_holder_may_be_gone(name: str, shop: Any) -> None:
    with pytest.raises(PlanError, match="it is not there any more"):
        PatchTarget(*name.split(":")).holder()


@given(st.sampled_from([math, os.path, json.decoder, collections, cv2]), st.data())
def test_every_target_leads_to_what_was_spelled(module: ModuleType, data: st.DataObject) -> None:
    functions = (n for n, v in vars(module).items() if callable(v) and not isinstance(v, type))
    name = data.draw(st.sampled_from(sorted(functions)))
    (wanted,) = resolved(f"{module.__name__}.{name}").targets
    holder, attribute = wanted.target.holder()
    assert vars(holder)[attribute] is vars(module)[name]
    again = "/".join(wanted.target.canonical)
    assert canonical(again) == again


def test_what_is_not_imported_is_pending(make: Make, main: ModuleType) -> None:
    make("shop.__init__", "")
    make("shop.tools", TOOLS)
    make("shop.more.__init__", "raise RuntimeError")
    assert waits_for("shop.tools.cut") == ("shop", False)
    assert waits_for("shop.tools:cut") == ("shop.tools", False)
    assert waits_for("no_such_package.f") == ("no_such_package", False)
    assert waits_for("cv2.resize/shop.tools.cut") == ("shop", False)
    importlib.import_module("shop")
    assert waits_for("shop.tools.cut") == ("shop.tools", False)
    assert waits_for("shop.more:below.f")[0] == "shop.more"
    assert "shop.tools" not in sys.modules
    importlib.import_module("shop.tools")
    assert canonical("shop.tools.cut") == "shop.tools:cut"


def test_names_of_the_main_program_may_still_come(shop: Any, main: ModuleType) -> None:
    for key in ("preprocess", "Dataset_/__getitem__", "__main__:preprocess", "Renamed/__call__"):
        assert waits_for(key) == ("__main__", True)
    defined(main, "def preprocess(): pass")
    assert canonical("preprocess") == "__main__:preprocess"


def test_allowed_packages_are_imported(make: Make, main: ModuleType) -> None:
    make("shop.__init__", "")
    make("shop.tools", TOOLS)
    make("shop.broken", "import no_such_module")
    assert waits_for("shop.tools.cut", ("other",)) == ("shop", False)
    for key in ("shop.tools.cut", "shop.tools:cut"):
        (wanted,) = resolved(key, allow=("shop",)).targets
        assert wanted.target == PatchTarget("shop.tools", "cut")
    for key in ("shop.broken.f", "shop.broken:f"):
        with pytest.raises(PlanError, match=r"'shop\.broken' cannot be imported: No module named"):
            resolved(key, allow=("shop",))
    with pytest.raises(PlanError, match="the module 'shop' has no 'tols'; near are 'tools'"):
        resolved("shop.tols.cut", allow=("shop",))


def test_a_lazy_package_is_not_asked(make: Make, main: ModuleType) -> None:
    make(
        "lazy.__init__",
        """
        __all__ = ["cut"]
        def __getattr__(name):
            import lazy.tools
            return getattr(lazy.tools, name)
        """,
    )
    make("lazy.tools", "def cut(): pass")
    importlib.import_module("lazy")
    assert waits_for("lazy.cut") == ("lazy", True)
    assert "lazy.tools" not in sys.modules
    with pytest.raises(PlanError, match="the module 'lazy' has no 'cutt'"):
        resolved("lazy.cutt")
    (wanted,) = resolved("lazy.cut", allow=("lazy",)).targets
    assert wanted.target == PatchTarget("lazy.tools", "cut")
    assert canonical("lazy.cut") == "lazy.tools:cut"  # which is loaded now


def test_a_module_with_a_lazy_loader_is_not_loaded(make: Make, main: ModuleType) -> None:
    make("late", "raise RuntimeError")
    spec = find_spec("late")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules["late"] = module
    spec.loader.exec_module(module)
    assert waits_for("late.f") == ("late", True)
    assert waits_for("f") == ("__main__", True)  # all modules are looked at


def test_a_module_that_is_being_imported_is_waited_for(make: Make, main: ModuleType) -> None:
    """What it has by then, it may still replace."""
    make("slow", "import builtins as b\ndef early(): pass\nb.reached.set()\nb.go_on.wait(60)")
    events: Any = builtins
    events.reached, events.go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=importlib.import_module, args=("slow",))
    thread.start()
    try:
        assert events.reached.wait(60)
        assert waits_for("slow.early") == ("slow", False)
        assert waits_for("slow.late") == ("slow", False)
    finally:
        events.go_on.set()
        thread.join()
        del events.reached, events.go_on
    assert canonical("slow.early") == "slow:early"


def test_modules_of_torch_are_called_by_forward() -> None:
    torch = pytest.importorskip("torch")
    assert canonical("torch.nn.Conv2d") == "torch.nn.modules.conv:Conv2d/forward"
    assert PatchTarget("torch.nn.modules.conv", "Conv2d.forward").holder()[0] is torch.nn.Conv2d
