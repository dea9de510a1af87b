"""Functions that find themselves in a dict, as torchvision's do; a module here stands in for it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from devicecore.migrate import PipelineMigrator

SOURCE = """
KERNELS = {}
def flip(x):
    return KERNELS[flip](x)
def unknown(x):
    return flip in KERNELS
KERNELS[flip] = lambda x: -x
"""
PLAN = {
    f"made_kernels.{name}": {"device": "cpu", "kernel": "torch"} for name in ("flip", "unknown")
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("made_kernels")
    monkeypatch.setitem(sys.modules, "made_kernels", module)
    exec(SOURCE, vars(module))
    utils: Any = SimpleNamespace(_KERNEL_REGISTRY=module.KERNELS)
    monkeypatch.setitem(sys.modules, "torchvision.transforms.v2.functional._utils", utils)
    return module


def test_a_wrapper_is_found_in_the_place_of_its_function(made: Any) -> None:
    flip, kernels = made.flip, dict(made.KERNELS)
    for _ in range(2):
        with PipelineMigrator(PLAN), PipelineMigrator(PLAN) as migrator:
            assert made.flip is not flip
            assert made.flip(2) == -2
            assert made.unknown(2)
        assert [row.calls for row in migrator.report().rows] == [1, 1]
        assert kernels == made.KERNELS
    assert made.flip(2) == -2


def test_what_stays_patched_stays_found(made: Any) -> None:
    outer = PipelineMigrator(PLAN).activate()
    with PipelineMigrator(PLAN):
        pass
    assert made.flip(2) == -2
    outer.deactivate()
    assert list(made.KERNELS) == [made.flip]
