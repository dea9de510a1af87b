"""Warnings about keys that nothing is for so far, when a plan begins to hold."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import unittest.main  # noqa: F401 - it has something called main
import warnings
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import (  # noqa: E402 - after cv2
    OptimizationPlan,
    PipelineMigrator,
    default_strategies,
)
from devicecore.migrate.plan.targets import resolve  # noqa: E402
from devicecore.migrate.plan.unmatched_keys import find_doubts  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH = {"device": "cpu", "kernel": "torch"}
NOT_SO_FAR = ": the program has none so far, and no module such a class"
SOURCE = """
class MadeData:
    def __getitem__(self, at): return self.prepare(at)
    def prepare(self, at): return at
"""


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("cvv2.resize", "there is no package 'cvv2'; did you mean 'cv2.resize'?"),
        ("Data/get/**/cvv2:resize", "no package 'cvv2'; did you mean 'Data/get/**/cv2:resize'?"),
        ("no_such_package_at_all:f", "there is no package 'no_such_package_at_all'"),
        ("opencv.resize", "there is no package 'opencv'; did you mean 'cv2.resize'?"),
        ("Data/get/opencv:flip", "no package 'opencv'; did you mean 'Data/get/cv2:flip'?"),
        ("np.add", "there is no package 'np'; did you mean 'numpy.add'?"),
        ("resize", f"'resize'{NOT_SO_FAR}; did you mean 'cv2.resize'"),
        ("copyMakeBordr", f"'copyMakeBordr'{NOT_SO_FAR}; did you mean 'cv2.copyMakeBorder'?"),
        ("cvv2", f"'cvv2'{NOT_SO_FAR}; did you mean 'cv2'?"),
        ("OpenCV", f"'OpenCV'{NOT_SO_FAR}; did you mean 'cv2'?"),
        ("MadeDta/__getitem__/cv2.flip", f"'MadeDta'{NOT_SO_FAR}; did you mean 'MadeData'?"),
        ("mkdedata/get", f"'mkdedata'{NOT_SO_FAR}; did you mean 'MadeData'?"),
        (
            "made_data.MadeData/__getitem__/prepar",
            (
                "waits for a function 'prepar' of the program: the class 'made_data:MadeData' has "
                "no 'prepar', and the program no such function so far; did you mean 'prepare'?"
            ),
        ),
        ("qqqqzzzz", f"waits for a class or function 'qqqqzzzz'{NOT_SO_FAR}"),
        ("main", f"waits for a class or function 'main'{NOT_SO_FAR}"),
        ("main/cv2.blur", f"waits for a class or function 'main'{NOT_SO_FAR}"),
        ("map", f"waits for a class or function 'map'{NOT_SO_FAR}"),
        ("Conv2d/backwards", "'torch.nn.modules.conv:Conv2d' has no 'backwards'"),
    ],
)
def test_a_key_that_nothing_can_be_for(
    key: str, said: str, write: Callable[..., None], no_trace: None
) -> None:
    if key.startswith("Data"):
        write(made_data=SOURCE.replace("MadeData", "Data").replace("__getitem__", "get"))
    else:
        write(made_data=SOURCE)
    importlib.import_module("made_data")
    migrator = PipelineMigrator({key: TORCH, "cv2.flip": TORCH})
    for begin in (migrator.activate, migrator.__enter__):
        with pytest.warns(RuntimeWarning) as caught:
            begin()
        assert len(caught) == 1
        text = str(caught[0].message)
        assert re.match(
            rf"the plan: the key '{re.escape(key)}' (is for no call: |waits for )", text
        )
        assert said in text
        assert text.endswith(said) or "did you mean" in said or "backwards" in said
        assert text.count(" or '") <= 1
        assert caught[0].filename == __file__
        migrator.activate()  # it is said once
        migrator.deactivate()
        migrator.deactivate()
    with pytest.raises(RuntimeWarning):  # as this configuration of warnings makes of it
        migrator.activate()
    assert not hasattr(cv2.flip, "__wrapped__")


def test_what_is_loaded_is_looked_at_once_for_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    class Modules(dict[str, Any]):
        passes = 0

        def items(self) -> Any:
            self.passes += 1
            return super().items()

    def passes(*keys: str) -> int:
        modules = Modules(sys.modules)
        with monkeypatch.context() as changed:
            changed.setattr("devicecore.migrate.plan.near_names.sys.modules", modules)
            missing = resolve(OptimizationPlan.load(dict.fromkeys(keys, TORCH))).missing
            modules.passes = 0
            assert len(find_doubts(missing, default_strategies(), is_told_of_main=False)) == len(
                keys
            )
        return modules.passes

    assert passes("Qqqqzzzz", "Zzzzqqqq/run", "resiz", "qzqzqzqz") == passes("Qqqqzzzz")


def test_what_may_still_come(write: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    write(made_later="def f(): pass")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    plan = dict.fromkeys(("colorsys.rgb_to_hsv", "made_later.f", "made_later:Late/run"), TORCH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with PipelineMigrator(plan):
            pass
        monkeypatch.setenv("DEVICECORE_MIGRATE", "off")
        with PipelineMigrator({"resize": TORCH}):
            pass


def test_it_names_the_line_of_the_block() -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    with pytest.warns(RuntimeWarning) as caught, PipelineMigrator({"cvv2.flip": TORCH}):
        pass
    assert caught[0].lineno == line


def test_later_warnings_name_the_line_of_the_program(write: Callable[..., None]) -> None:
    write(made_data=SOURCE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with PipelineMigrator({"made_data.f": TORCH}):
            first = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
            importlib.import_module("made_data")
        migrator = PipelineMigrator({"cv2.flip": TORCH}).activate()
        flip, cv2.flip = cv2.flip, len
        second = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        migrator.deactivate()
        cv2.flip = flip.__wrapped__
    assert [(each.filename, each.lineno) for each in caught] == [
        (__file__, first),
        (__file__, second),
    ]
