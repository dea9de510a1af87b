"""What workers of torch's own loader have counted, in the report of the process that has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from torch.utils.data import DataLoader  # noqa: E402

from devicecore.migrate import PipelineMigrator  # noqa: E402

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
