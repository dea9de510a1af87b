"""Calls that mean something else to OpenCV than to kernels keep OpenCV's meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after cv2
from tests.migrate.sites import assert_same  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH = {"device": "cpu", "kernel": "torch"}
IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)

pytestmark = pytest.mark.usefixtures("no_trace")


class Derived(np.ndarray):
    """An array of a program's own kind."""


CALLS: dict[str, Callable[[], Any]] = {
    "four_axes": lambda: cv2.add(np.ones((2, 3, 4, 5), np.uint8), np.ones((2, 3, 4, 5), np.uint8)),
    "list": lambda: cv2.flip([IMAGE, IMAGE], 1),
    "tensor": lambda: cv2.flip(torch.from_numpy(IMAGE), 1),
    "by_name": lambda: cv2.flip(src=IMAGE, flipCode=1),
    "derived": lambda: cv2.flip(IMAGE.view(Derived), 1),
    "derived_dst": lambda: cv2.flip(IMAGE, 1, dst=np.zeros_like(IMAGE).view(Derived)),
    "umat": lambda: cv2.flip(cv2.UMat(IMAGE), 1).get(),
    "fortran": lambda: cv2.flip(np.asfortranarray(IMAGE), 1),
    "view": lambda: cv2.flip(IMAGE[:, ::-1], 1),
    "plane": lambda: cv2.flip(IMAGE[..., 0], 1),
    "line": lambda: cv2.flip(np.arange(5, dtype=np.uint8), 1),
    "merge": lambda: cv2.merge([IMAGE[..., 0], IMAGE[..., 1]]),
    "merge_array": lambda: cv2.merge(np.ones((2, 3, 4), np.uint8)),
    "merge_four_axes": lambda: cv2.merge(np.ones((2, 3, 4, 5), np.uint8)),
    "merge_lists": lambda: cv2.merge([[IMAGE], [IMAGE]]),
    "split": lambda: cv2.split(IMAGE),
    "split_four_axes": lambda: cv2.split(IMAGE[None]),
    "number": lambda: cv2.add(IMAGE, 3),
    "by_names": lambda: cv2.add(src1=IMAGE, src2=IMAGE, dtype=cv2.CV_16S),
    "too_many": lambda: cv2.flip(IMAGE, 1, 2, 3, 4),
    "unknown_name": lambda: cv2.flip(IMAGE, flip=1),
    "none": lambda: cv2.flip(None, 1),
    "empty": lambda: cv2.flip(np.empty((0, 3, 3), np.uint8), 1),
    "big_endian": lambda: cv2.flip(IMAGE.astype(">u2"), 1),
    "objects": lambda: cv2.flip(IMAGE.astype(object), 1),
    "bools": lambda: cv2.flip(IMAGE.astype(bool), 1),
}


OPENCVS_ONLY = {
    "four_axes", "list", "tensor", "derived", "derived_dst", "umat", "merge_four_axes",
    "merge_lists", "split_four_axes",
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_opencvs_own_meaning_stays(name: str) -> None:
    def answer() -> Any:
        try:
            return CALLS[name]()
        except cv2.error as error:
            return str(error)

    expected = answer()
    plan = {f"cv2.{name}": TORCH for name in ("flip", "add", "merge", "split")}
    with PipelineMigrator(plan) as migrator:
        found = answer()
    assert_same(found, expected)
    is_others = name in OPENCVS_ONLY
    assert not is_others or not any(row.migrated for row in migrator.report().rows)
    assert name != "list" or "these are not several images" in str(migrator.report())
    assert "ault" not in str(migrator.report())


def test_in_place_and_dst_keep_their_meaning() -> None:
    with PipelineMigrator({"cv2.add": TORCH, "cv2.flip": TORCH}, verify=2) as migrator:
        for _ in range(4):
            own, place = IMAGE.copy(), np.zeros_like(IMAGE)
            assert cv2.add(own, own, own) is own
            assert (own == IMAGE * 2).all()
            assert cv2.flip(IMAGE, 1, place) is place
            assert (place == IMAGE[:, ::-1]).all()
            other = np.zeros((7, 7), np.uint8)
            assert cv2.flip(IMAGE, 1, dst=other) is not other
    counts = {row.path: row.migrated for row in migrator.report().rows}
    assert counts == {"cv2:add": 4, "cv2:flip": 8}
