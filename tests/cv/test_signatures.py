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


def test_only_public_names_are_listed() -> None:
    listed = dir(cv)
    assert {*cv.__all__, *catalog.TORCH, "imread", "createCLAHE"} - {"CLAHE_apply"} <= {*listed}
    assert not [name for name in listed if name.startswith("_") or not hasattr(cv, name)]
    assert not {"annotations", "catalog", "import_module", "require"} & {*listed}
