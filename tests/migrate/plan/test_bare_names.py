"""Bare names of a plan: which class is meant, also where it comes with a later import."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import OptimizationPlan, PipelineMigrator  # noqa: E402 - after cv2
from devicecore.migrate.plan.targets import resolve  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TORCH = {"device": "cpu", "kernel": "torch"}
IMAGE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
DATA = """
import cv2
class MyDataset:
    def __init__(self, image): self.image = image
    def __getitem__(self, at): return self.preprocess(self.image)
    def preprocess(self, image): return cv2.flip(image, at if (at := 1) else 0)
"""

pytestmark = pytest.mark.usefixtures("no_trace")


def entries(*keys: str) -> list[str]:
    found = resolve(OptimizationPlan.load(dict.fromkeys(keys, "cpu")))
    return [str(each.key) for each in found.entries]


KEYS = (
    "MyDataset",
    "MyDataset/__getitem__",
    "MyDataset/__getitem__/preprocess",
    "MyDataset/**/preprocess/cv2.flip",
    "MyDataset/__getitem__/**/cv2.flip",
)
HOWS = ("package", "from_import", "nested", "reload")


@pytest.mark.parametrize(
    ("key", "how"), [*((key, "module") for key in KEYS), *((KEYS[1], how) for how in HOWS)]
)
def test_a_class_that_comes_with_a_later_import(
    key: str, how: str, write: Callable[..., None], tmp_path: Path
) -> None:
    source = DATA.replace("__getitem__", "__call__") if "/__getitem__" not in key else DATA
    package = tmp_path / "made_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "made_inner.py").write_text(source)
    write(
        made_data=source,
        made_user="from made_data import MyDataset",
        made_nested="import made_package.made_inner\nassert made_package",
        made_empty="",
    )
    if how == "reload":
        write(made_data="")
        importlib.import_module("made_data")
        write(made_data=source)
    with pytest.warns(RuntimeWarning, match="waits for a class or function 'MyDataset': "):
        migrator = PipelineMigrator({key: TORCH}).activate()
    try:
        importlib.import_module("made_empty")
        name = "made_package.made_inner" if how in {"package", "nested"} else "made_data"
        asked = {"from_import": "made_user", "nested": "made_nested"}.get(how, name)
        if how == "reload":
            importlib.reload(sys.modules["made_data"])
        else:
            importlib.import_module(asked)
        module: Any = sys.modules[name]
        data = module.MyDataset(IMAGE)
        found = data[0] if "/__getitem__" in key else data(0)
        assert (found == IMAGE[:, ::-1]).all()
        assert [row.calls for row in migrator.report().rows] == [1] * len(migrator.report().rows)
        assert migrator.report().rows
        assert migrator.report().unmatched == []
    finally:
        migrator.deactivate()
    methods = vars(module.MyDataset).values()
    assert not any(hasattr(each, "__wrapped__") for each in methods)


def test_no_import_is_watched_but_while_a_bare_name_waits(write: Callable[..., None]) -> None:
    write(made_data=DATA, made_other="", made_third="")
    with PipelineMigrator({"cv2.flip": TORCH}):
        assert "Follower" not in type(find_spec("made_other").loader).__name__  # type: ignore[union-attr]
    with pytest.warns(RuntimeWarning, match="MyDataset"):
        migrator = PipelineMigrator({"MyDataset/__getitem__": TORCH}).activate()
    other = importlib.import_module("made_other")
    assert type(other.__spec__.loader).__name__ == "SourceFileLoader"  # type: ignore[union-attr]
    assert type(other.__loader__).__name__ == "SourceFileLoader"
    importlib.import_module("made_data")
    assert "Follower" not in type(find_spec("made_third").loader).__name__  # type: ignore[union-attr]
    migrator.deactivate()


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "made_library.py").write_text(source)
    monkeypatch.syspath_prepend(folder)


def test_the_programs_class_comes_before_one_of_a_package(
    write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "class MyDataset:\n    def __getitem__(self, at): return at\n")
    write(made_data=DATA, made_again="class MyDataset:\n    def __getitem__(self, at): pass\n")
    library: Any = importlib.import_module("made_library")
    assert entries("MyDataset/__getitem__") == ["made_library:MyDataset/__getitem__"]
    with PipelineMigrator({"MyDataset/__getitem__": TORCH}) as migrator:
        data: Any = importlib.import_module("made_data")
        data.MyDataset(IMAGE)[0]
        library.MyDataset()[0]
        importlib.import_module("made_again")  # what was found is still meant
        migrator.refresh()
        data.MyDataset(IMAGE)[0]
        rows = {row.path: row.calls for row in migrator.report().rows}
    assert rows["made_data:MyDataset/__getitem__"] == 2
    assert "made_library:MyDataset/__getitem__" not in rows
    assert not hasattr(library.MyDataset.__getitem__, "__wrapped__")


def test_a_class_of_a_package_without_the_method_is_not_meant(
    write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "class MyDataset:\n    def load(self): pass\n")
    write(made_data=DATA)
    importlib.import_module("made_library")
    lacks = "'made_library:MyDataset' has no '__getitem__'"
    with pytest.warns(RuntimeWarning, match=rf"waits for a class .*; the class {lacks}"):
        migrator = PipelineMigrator({"MyDataset/__getitem__": TORCH}).activate()
    data: Any = importlib.import_module("made_data")
    data.MyDataset(IMAGE)[0]
    assert migrator.report().unmatched == []
    migrator.deactivate()


def test_an_entry_that_turns_out_wrong_holds_up_no_other(write: Callable[..., None]) -> None:
    write(made_data=DATA, made_late="def f(x): return x")
    plan = {"MyDataset/__getitm__": TORCH, "made_late.f": TORCH}
    with pytest.warns(RuntimeWarning, match="waits for"):
        migrator = PipelineMigrator(plan).activate()
    try:
        with pytest.warns(RuntimeWarning, match="has no '__getitm__'; near are '__getitem__'"):
            importlib.import_module("made_data")
        with pytest.warns(RuntimeWarning, match="has no '__getitm__'"):
            late: Any = importlib.import_module("made_late")
        late.f(IMAGE)
        assert [row.path for row in migrator.report().rows] == ["made_late:f"]
    finally:
        migrator.deactivate()


@pytest.mark.parametrize("name", ["main", "filter", "map", "date", "test", "zip"])
def test_lowercase_names_of_the_standard_library_are_not_in_the_way(
    name: str, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    importlib.import_module("unittest.main")
    importlib.import_module("datetime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with PipelineMigrator({name: TORCH, f"{name}/cv2.flip": TORCH}) as migrator:
            source = f"import cv2\ndef {name}(image): return cv2.flip(image, 1)\n"
            exec(source, vars(sys.modules["__main__"]))
            try:
                migrator.refresh()
                getattr(sys.modules["__main__"], name)(IMAGE)
                paths = {row.path for row in migrator.report().rows}
            finally:
                migrator.deactivate()
                delattr(sys.modules["__main__"], name)
            migrator.activate()
    assert f"__main__:{name}/cv2:flip" in paths
