"""The documentation's table of kernels: made of the kept results, and of every kernel there is."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from benchmarks import cv_table
from devicecore.cv import catalog


def results() -> list[dict[str, dict[str, object]]]:
    return [json.loads((cv_table.RESULTS / name).read_text()) for name in cv_table.KEPT]


def test_the_page_has_the_tables_of_the_kept_results() -> None:
    page = cv_table.PAGE.read_text(encoding="utf-8")
    assert cv_table.table(results()) in page
    assert cv_table.speeds(json.loads(cv_table.SPEEDS.read_text(encoding="utf-8"))) in page


def test_every_kernel_was_measured_and_kept_its_promises() -> None:
    for result in results():
        functions = result["functions"]
        assert functions.keys() >= catalog.TORCH.keys()
        assert not [name for name, found in functions.items() if found["broken"]]  # type: ignore[index]
