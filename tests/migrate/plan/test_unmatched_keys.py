"""Keys of a plan that were for no call, as a report names them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after cv2

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TORCH = {"device": "cpu", "kernel": "torch"}
IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
WHAT = "no call of this process, or of its workers with this plan, was for it"


def test_keys_that_were_for_no_call(write: Callable[..., None], no_trace: None) -> None:
    write(
        made_late="import cv2\ndef inner(x): return cv2.flip(x, 1)\ndef outer(x): return inner(x)\n"
    )
    plan = {
        "made_late.outer/**/cv2.flip": TORCH,  # each call of it is for this one
        "cv2.flip": TORCH,
        "made_late.inner": "cpu",
        "made_later.f": TORCH,
        "Misspelt/__call__": "cpu",
    }
    migrator = PipelineMigrator(plan)
    assert migrator.report().unmatched == []
    late: Any = importlib.import_module("made_late")
    with pytest.warns(RuntimeWarning, match="Misspelt|made_later"), migrator:
        late.outer(IMAGE)
    flip, *rest = migrator.report().unmatched
    assert flip == f"the plan, 'cv2.flip': {WHAT}; all that it names is there"
    later, misspelt = rest
    near = "did you mean 'made_late.f'?"
    assert later == f"the plan, 'made_later.f': {WHAT}; no module 'made_later' was imported; {near}"
    why = "the program had no such name when it was last looked for"
    assert misspelt == f"the plan, 'Misspelt/__call__': {WHAT}; {why}"
    with pytest.warns(RuntimeWarning, match="Misspelt|made_later"), migrator:
        cv2.flip(IMAGE, 1)
    assert migrator.report().unmatched == rest


def test_what_a_module_never_handed_out(write: Callable[..., None]) -> None:
    write(made_lazy="def __getattr__(name):\n    raise AttributeError(name)\n")
    importlib.import_module("made_lazy")
    with PipelineMigrator({"made_lazy.f": TORCH}) as migrator:
        (said,) = migrator.report().unmatched
    why = "the module 'made_lazy' had no such name when it was last looked for"
    assert said == f"the plan, 'made_lazy.f': {WHAT}; {why}"


def test_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_MIGRATE", "off")
    with PipelineMigrator({"misspelt": TORCH}) as migrator:
        assert migrator.report().unmatched == []


MADE_SET = "import cv2\nclass MadeSet:\n    def __getitem__(self, at): return cv2.flip(at, 1)\n"
LATER = "what it names came later, and no import told of it; refresh() looks for it again"


def test_a_class_of_the_program_that_came_after_a_package_s(
    monkeypatch: pytest.MonkeyPatch, no_trace: None
) -> None:
    made: Any = ModuleType("made_by_hand")
    key = "Dataset/__getitem__/cv2.flip"
    assert torch.utils.data.Dataset is not None
    with PipelineMigrator({key: TORCH}) as migrator:
        monkeypatch.setitem(sys.modules, made.__name__, made)
        exec(MADE_SET.replace("MadeSet", "Dataset"), vars(made))
        assert migrator.report().unmatched == [f"the plan, {key!r}: {WHAT}; {LATER}"]


@pytest.mark.parametrize("module", ["made_by_hand", "__main__"])
@pytest.mark.parametrize("key", ["MadeSet/__getitem__/cv2.flip", "{}:MadeSet/__getitem__/cv2.flip"])
def test_a_class_that_no_import_told_of(
    key: str, module: str, monkeypatch: pytest.MonkeyPatch, no_trace: None
) -> None:
    made: Any = ModuleType(module)
    key = key.format(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no such module so far
        if module == "__main__":
            monkeypatch.setitem(sys.modules, module, made)
        migrator = PipelineMigrator({key: TORCH}).activate()
    try:
        (said,) = migrator.report().unmatched
        assert "had no such name" in said or "was imported" in said
        monkeypatch.setitem(sys.modules, module, made)
        exec(MADE_SET, vars(made))
        made.MadeSet()[IMAGE]
        assert migrator.report().unmatched == [f"the plan, {key!r}: {WHAT}; {LATER}"]
        migrator.refresh()
        made.MadeSet()[IMAGE]
        assert migrator.report().unmatched == []
    finally:
        migrator.deactivate()


def test_a_name_is_not_near_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(RuntimeWarning, match="MadeSet"):
        migrator = PipelineMigrator({"MadeSet/__getitem__": TORCH}).activate()
    try:
        for name in ("made_once", "made_twice"):  # so that nobody knows which one is meant
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
            exec(MADE_SET, vars(sys.modules[name]))
        (said,) = migrator.report().unmatched
        assert "did you mean" not in said
    finally:
        migrator.deactivate()


@pytest.mark.parametrize(
    "key", ["MadeSet/__getitem__/cv2.flip", "made_by_file:MadeSet/__getitem__"]
)
def test_a_module_that_is_loaded_by_its_file(key: str, tmp_path: Path, no_trace: None) -> None:
    (tmp_path / "elsewhere.py").write_text(MADE_SET)
    original = importlib.util.module_from_spec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no such module so far
        migrator = PipelineMigrator({key: TORCH}).activate()
    try:
        spec = importlib.util.spec_from_file_location("made_by_file", tmp_path / "elsewhere.py")
        assert spec is not None
        assert spec.loader is not None
        loader = spec.loader
        made: Any = importlib.util.module_from_spec(spec)
        sys.modules["made_by_file"] = made
        spec.loader.exec_module(made)
        assert made.__loader__ is made.__spec__.loader is loader
        made.MadeSet()[IMAGE]
        assert migrator.report().unmatched == []
    finally:
        migrator.deactivate()
        sys.modules.pop("made_by_file", None)
    assert importlib.util.module_from_spec is original
