"""Whether a result keeps a promise, where numbers are none, or have no end."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from devicecore.cv.self_test import keeps_promise

STRANGE = np.array([1.0, np.nan, np.inf, -np.inf, 2.0], np.float32)


@pytest.mark.parametrize("promise", ["exact", "lsb1", "tolerance", "close"])
def test_the_same_strange_numbers_are_no_difference(promise: str) -> None:
    assert keeps_promise(promise, STRANGE.copy(), STRANGE)  # type: ignore[arg-type]


@pytest.mark.parametrize("promise", ["exact", "lsb1", "tolerance"])
@pytest.mark.parametrize("place", range(5))
def test_other_ones_are(promise: str, place: int) -> None:
    found = STRANGE.copy()
    found[place] = 7.0
    assert not keeps_promise(promise, found, STRANGE)  # type: ignore[arg-type]
    assert not keeps_promise(promise, STRANGE, found)  # type: ignore[arg-type]


def test_within_tolerance_beside_strange_numbers() -> None:
    assert keeps_promise("tolerance", STRANGE + np.float32(1e-6), STRANGE)
