"""The signatures that editors and type checkers read are those of the installed OpenCV 5."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from devicecore import cv
from devicecore.cv import catalog
from devicecore.cv.environment import environment
from tools import cv_signatures


@pytest.mark.skipif(environment().version < (5, 0), reason="they are those of OpenCV 5")
def test_the_file_is_what_the_tool_writes() -> None:
    assert cv_signatures.TARGET.read_text(encoding="utf-8") == cv_signatures.text()


def test_every_function_has_one() -> None:
    written = cv_signatures.TARGET.read_text(encoding="utf-8")
    for name in {*catalog.TORCH, *catalog.HOST} - {"CLAHE_apply"}:
        assert f"\ndef {name}(" in written
        assert callable(getattr(cv, name))
