"""For tests of `devicecore.cv`: with and without what OpenCV's results depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=[True, False], ids=["ipp", "without"])
def ipp(request: Any) -> Iterator[None]:
    """Let OpenCV use Intel's IPP, or not."""
    cv2 = pytest.importorskip("cv2")
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(request.param)
    yield
    cv2.ipp.setUseIPP(before)
