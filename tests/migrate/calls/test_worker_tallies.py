"""What workers of torch's own loader have counted, in the report of the process that has it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from torch.utils.data import DataLoader  # noqa: E402

from devicecore.migrate import PipelineMigrator  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

PLAN = {"cv2.flip": {"device": "cpu", "kernel": "torch"}}


class Pictures:
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return cv2.flip(np.full((4, 4, 3), index, np.uint8), 1)


def begin(_: int) -> None:
    PipelineMigrator(PLAN).activate()


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_calls_of_workers_are_counted(start: str) -> None:
    with PipelineMigrator(PLAN) as migrator:
        for _ in range(1 if start == "spawn" else 2):
            how = begin if start == "spawn" else None
            pictures: Any = Pictures()
            loader: Any = DataLoader(
                pictures, 2, num_workers=2, multiprocessing_context=start, worker_init_fn=how
            )
            assert len(list(loader)) == 3
        (row,) = migrator.report().rows
        assert (row.calls, row.migrated) == ((6, 6) if start == "spawn" else (12, 12))
        assert not migrator.report().unmatched
    assert PipelineMigrator(PLAN).report().rows == []  # it has had no workers


PROGRAM = """
import multiprocessing, sys, numpy as np, cv2
from torch.utils.data import DataLoader
from devicecore.migrate import DeviceLoader, PipelineMigrator

PLAN = {"cv2.flip": {"device": "cpu", "kernel": "torch"}, "cvv2.flip": "cpu", "Picturs": "cpu"}

class Pictures:
    def __len__(self): return 4
    def __getitem__(self, index): return cv2.flip(np.zeros((4, 4, 3), np.uint8), 1)

def begin(*_):
    PipelineMigrator(PLAN).activate()

def load(loader, **how):
    assert len(list(loader(Pictures(), batch_size=2, num_workers=2, **how))) == 2

if __name__ == "__main__":
    how, start = sys.argv[1:]
    given = {"multiprocessing_context": start}
    if how == "two epochs":
        made = DeviceLoader(Pictures(), PLAN, batch_size=2, num_workers=2, **given)
        for _ in range(2):
            assert len(list(made)) == 2
    elif how == "parent, too":
        with PipelineMigrator(PLAN):
            load(DataLoader, worker_init_fn=begin, **given)
    elif how == "workers only":
        load(DataLoader, worker_init_fn=begin, **given)
        load(DataLoader, worker_init_fn=begin, **given)
    elif how == "pool":
        with PipelineMigrator(PLAN), multiprocessing.get_context(start).Pool(2, begin) as pool:
            pool.map(abs, range(4))
"""


@pytest.mark.parametrize(
    ("how", "start"),
    [
        ("two epochs", "fork"),
        ("parent, too", "fork"),
        ("workers only", "fork"),
        ("pool", "spawn"),
    ],
)
def test_keys_for_no_call_are_told_once(how: str, start: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, how, start], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("'cvv2.flip' is for no call") == 1, done.stderr
    assert done.stderr.count("'Picturs' waits for a class") == 1, done.stderr
