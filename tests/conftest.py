"""For all tests: what hypothesis may take for a failure, and a cache folder of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pathlib import Path

# A busy machine is slow, which is no failure.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder that this test has for itself."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(folder))
    return folder
