"""Whose time a migrated call counts as: the device's, the host's, or that of first use."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.errors import RefusedCallError
from devicecore.first_use import first_use
from tests.migrate.sites import OwnError, Recorded, site

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("torch")


@pytest.mark.parametrize("verify", [0, 1])
@pytest.mark.parametrize("fails", [False, True])
def test_what_is_done_once_counts_neither_as_the_devices_time_nor_as_the_hosts(
    verify: int, *, fails: bool
) -> None:
    def compute(*_: Any) -> str:
        with first_use():
            time.sleep(0.05)
        if fails:
            raise OwnError
        return "the original's"

    def original(*_: Any) -> str:
        time.sleep(0.02)
        return "the original's"

    found = site(compute, verify=verify)
    found.call(original, (1,), {})
    row = found.tally.row()
    assert row.first_use_s >= 0.05 > row.device_s
    assert (row.host_s >= 0.02) is bool(fails or verify)
    assert row.calls == 1


@pytest.mark.parametrize("is_strict", [False, True])
def test_a_call_that_is_refused_takes_none_of_the_devices_time(*, is_strict: bool) -> None:
    refused = RefusedCallError("cv2.f", "FAKE:0", {"torch": "not these arguments"})

    def compute(*_: Any) -> str:
        time.sleep(0.02)  # choosing
        raise refused

    found = site(compute, strict=is_strict)
    with pytest.raises(RefusedCallError) if is_strict else nullcontext():
        found.call(Recorded(), (), {})
    row = found.tally.row()
    assert (row.migrated, row.fell_back, row.device_s) == (0, 1, 0.0)
    assert row.host_s >= 0.02


def test_the_import_of_torch_is_of_first_use(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("cv2")
    program = """
import cv2, numpy, sys
from devicecore.migrate import PipelineMigrator
with PipelineMigrator({"cv2.resize": {"device": "cpu", "kernel": "torch"}}) as migrator:
    assert "torch" not in sys.modules
    cv2.resize(numpy.zeros((8, 8), numpy.int16), (4, 4))
    assert "torch" in sys.modules
(row,) = migrator.report().rows
assert row.device_s == 0.0 < row.host_s < row.first_use_s, row
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
