"""Post-import callbacks: every kind of module and loader, and no trace of them afterwards."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import subprocess
import sys
import threading
import zipfile
from importlib.machinery import NamespaceLoader, SourceFileLoader
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.migrate.patching.import_hooks import watch_imports, when_imported

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(autouse=True)
def _no_trace() -> Iterator[None]:
    before = list(sys.meta_path)
    yield
    after, sys.meta_path[:] = list(sys.meta_path), before
    assert after == before


def test_a_module_that_is_imported_already_is_told_of_at_once() -> None:
    seen: list[ModuleType] = []
    watch = when_imported("json", seen.append)
    watch.remove()
    assert seen == [sys.modules["json"]]
    assert isinstance(sys.modules["json"].__loader__, SourceFileLoader)


def test_a_module_that_is_imported_later_is_whole_when_told_of(write: Any) -> None:
    write(made_a="x = 1\ndef f(): pass\ny = 2")
    seen: list[int] = []
    watch = when_imported("made_a", lambda module: seen.append(module.y))
    assert seen == []
    importlib.import_module("made_a")
    assert seen == [2]
    watch.remove()


def test_the_module_looks_as_it_does_without_us(write: Any) -> None:
    write(made_a="def f(): pass", made_b="def f(): pass")
    watch = when_imported("made_a", lambda module: None)
    ours, plain = map(importlib.import_module, ("made_a", "made_b"))
    watch.remove()
    assert type(ours.__loader__) is type(plain.__loader__) is SourceFileLoader
    assert ours.__spec__ is not None
    assert ours.__spec__.loader is ours.__loader__
    assert vars(ours).keys() == vars(plain).keys()
    assert inspect.getsource(ours.f) == "def f(): pass\n"


def test_a_spec_that_is_only_looked_at_answers_as_ever(write: Any) -> None:
    write(made_a="x = 1")
    seen: list[ModuleType] = []
    watch = when_imported("made_a", seen.append)
    spec = importlib.util.find_spec("made_a")
    assert spec is not None
    loader: Any = spec.loader
    assert loader.get_source("made_a") == "x = 1"
    assert not loader.is_package("made_a")
    watch.remove()
    assert seen == []


def test_removed_is_removed(write: Any) -> None:
    write(made_a="")
    seen: list[ModuleType] = []
    first, second = (when_imported("made_a", seen.append) for _ in range(2))
    first.remove()
    first.remove()
    importlib.import_module("made_a")
    second.remove()
    importlib.reload(sys.modules["made_a"])
    assert len(seen) == 1


def test_a_reload_is_told_of_again(write: Any) -> None:
    write(made_a="x = 1")
    seen: list[ModuleType] = []
    module = importlib.import_module("made_a")
    watch = watch_imports("made_a", seen.append)
    assert seen == []
    assert importlib.reload(module) is module
    assert seen == [module]
    assert isinstance(module.__loader__, SourceFileLoader)
    watch.remove()


def test_submodules_and_their_packages(write: Any) -> None:
    write({"made_p/__init__": "from made_p import sub\nx = 1", "made_p/sub": "y = 1"})
    order: list[str] = []
    watches = [
        when_imported(name, lambda module: order.append(module.__name__))
        for name in ("made_p", "made_p.sub")
    ]
    importlib.import_module("made_p.sub")
    assert order == ["made_p.sub", "made_p"]
    for watch in watches:
        watch.remove()


def test_a_namespace_package(tmp_path: Path, write: Any) -> None:
    (tmp_path / "made_n").mkdir()
    (tmp_path / "made_m").mkdir()
    write({"made_n/sub": "x = 1"})
    seen: list[ModuleType] = []
    watch = when_imported("made_n", seen.append)
    assert importlib.import_module("made_n.sub").x == 1
    plain: Any = importlib.import_module("made_m")
    watch.remove()
    assert len(seen) == 1
    found: Any = seen[0]
    assert type(found.__loader__) is type(plain.__loader__) is NamespaceLoader
    assert vars(found).keys() - {"sub"} == vars(plain).keys()
    assert found.__file__ is plain.__file__ is None
    assert list(found.__path__) == [str(tmp_path / "made_n")]


def test_a_zipped_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("made_z.py", "x = 1")
        archive.writestr("made_y.py", "x = 2")
    monkeypatch.syspath_prepend(tmp_path / "modules.zip")
    seen: list[str] = []
    watch = when_imported("made_z", lambda module: seen.append(module.__name__))
    other, module = map(importlib.import_module, ("made_y", "made_z"))
    watch.remove()
    assert (other.x, module.x, seen) == (2, 1, ["made_z"])
    assert module.__loader__ is other.__loader__  # one for the archive


def test_a_module_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "_symtable", raising=False)
    seen: list[ModuleType] = []
    watch = when_imported("_symtable", seen.append)
    module = importlib.import_module("_symtable")
    watch.remove()
    assert seen == [module]
    assert module.__loader__ is importlib.machinery.BuiltinImporter


def _lazily(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("is_made_first", [True, False])
def test_a_lazy_module_is_told_of_when_it_is_used(write: Any, is_made_first: bool) -> None:
    write(made_a="x = 1")
    seen: list[int] = []
    if is_made_first:
        watch = when_imported("made_a", lambda module: seen.append(module.x))
        module = _lazily("made_a")
    else:
        module = _lazily("made_a")
        watch = when_imported("made_a", lambda module: seen.append(module.x))
    assert seen == []
    assert module.x == 1
    assert seen == [1]
    assert isinstance(module.__loader__, SourceFileLoader)
    watch.remove()


def test_a_lazy_module_that_nobody_watches_any_more(write: Any) -> None:
    write(made_a="x = 1")
    module = _lazily("made_a")
    spec: Any = object.__getattribute__(module, "__spec__")
    before = spec.loader
    when_imported("made_a", lambda _: pytest.fail("told of")).remove()
    assert spec.loader is before
    assert type(module).__module__ == "importlib.util"  # it was not loaded for this


def test_an_error_in_a_callback_is_a_warning_and_the_others_are_called(write: Any) -> None:
    write(made_a="x = 1")
    seen: list[ModuleType] = []

    def fail(module: ModuleType) -> None:
        msg = "no such function"
        raise LookupError(msg)

    watches = [when_imported("made_a", each) for each in (fail, seen.append)]
    with pytest.warns(RuntimeWarning, match="import of made_a failed: LookupError"):
        module = importlib.import_module("made_a")
    assert seen == [module]
    for watch in watches:
        watch.remove()


def test_a_module_that_fails_to_import_is_told_of_when_it_succeeds(write: Any) -> None:
    write(made_a="import made_b")
    seen: list[ModuleType] = []
    watch = when_imported("made_a", seen.append)
    with pytest.raises(ModuleNotFoundError, match="made_b"):
        importlib.import_module("made_a")
    assert seen == []
    write(made_b="")
    assert seen == []
    assert [importlib.import_module("made_a")] == seen
    watch.remove()


def test_a_module_that_puts_another_object_into_its_place(write: Any) -> None:
    write(made_a="import sys, types\nother = types.ModuleType('b')\nsys.modules[__name__] = other")
    seen: list[ModuleType] = []
    watch = when_imported("made_a", seen.append)
    assert importlib.import_module("made_a") is seen[0]
    assert seen[0].__name__ == "b"
    watch.remove()


def test_callbacks_may_import_watch_and_remove(write: Any) -> None:
    write(made_a="", made_b="")
    order: list[str] = []
    watches: list[Any] = []

    def told(module: ModuleType) -> None:
        order.append(module.__name__)
        watches.append(when_imported("made_b", lambda other: order.append(other.__name__)))
        importlib.import_module("made_b")
        first.remove()

    first = when_imported("made_a", told)
    importlib.import_module("made_a")
    assert order == ["made_a", "made_b"]
    watches[0].remove()


def test_a_module_that_is_just_being_imported_is_told_of_when_it_is_whole(write: Any) -> None:
    write(
        made_a="import made_hooks\nmade_hooks.begin()\nimport made_b\nx = 1",
        made_b="",
        made_c="",
        made_hooks="",
    )
    seen: list[int] = []
    watches: list[Any] = []
    hooks: Any = importlib.import_module("made_hooks")
    hooks.begin = lambda: watches.append(
        when_imported("made_a", lambda module: seen.append(module.x))
    )
    importlib.import_module("made_a")
    assert seen == []  # it had no x yet
    importlib.import_module("made_c")
    assert seen == [1]
    watches[0].remove()


class _Asking:
    """A finder that asks all others, as ours does."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


@pytest.mark.parametrize("is_before", [True, False])
def test_another_finder_that_asks_all_others(
    write: Any, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    write(made_a="x = 1")
    seen: list[ModuleType] = []
    asking: Any = _Asking()
    if is_before:
        watch = when_imported("made_a", seen.append)
        sys.meta_path.insert(0, asking)
    else:
        sys.meta_path.insert(0, asking)
        watch = when_imported("made_a", seen.append)
    try:
        assert [importlib.import_module("made_a")] == seen
    finally:
        watch.remove()
        sys.meta_path.remove(asking)


def test_threads_that_import_and_watch_at_once(write: Any) -> None:
    names = [f"made_t{number}" for number in range(30)]
    write(**dict.fromkeys(names, "x = 1"))
    seen: list[str] = []
    watches: list[Any] = []
    start = threading.Barrier(4)

    def told(module: ModuleType) -> None:
        seen.append(module.__name__)

    def watch() -> None:
        start.wait()
        watches.extend([when_imported(name, told) for name in names])

    def load() -> None:
        start.wait()
        for name in names:
            importlib.import_module(name)

    threads = [threading.Thread(target=target) for target in (watch, watch, load, load)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in watches:  # those that came in the middle of an import
        each.tell_if_imported()
        each.remove()
    assert sorted(seen) == sorted(names * 2)


def test_resolving_imports_nothing() -> None:
    code = (
        "import sys, json; from devicecore.migrate.plan.optimization_plan import OptimizationPlan;"
        "from devicecore.migrate.plan.targets import resolve;"
        "keys = ['cv2.resize', 'numpy:add', 'json.tool.main', 'json.tool:main', 'torch.nn.Module'];"
        "found = resolve(OptimizationPlan.load(dict.fromkeys(keys, 'cpu')));"
        "print([each.module for each in found.pending],"
        " {'cv2', 'numpy', 'torch', 'json.tool'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "['cv2', 'numpy', 'json.tool', 'json.tool', 'torch'] set()"
