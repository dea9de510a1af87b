"""Keys of a plan that were for no call, as a report names them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after cv2

if TYPE_CHECKING:
    from collections.abc import Callable

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
