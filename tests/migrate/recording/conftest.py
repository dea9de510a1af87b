"""For the tests of recorded frames: what is ready before, and what must not be left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devicecore.ledger import default_ledger
from devicecore.migrate.recording.current import OPEN
from devicecore.scope import device_scope

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def _scopes_are_ready() -> None:
    with device_scope("cpu"):  # the first one looks at imports from then on
        pass


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    kept = set(OPEN)
    OPEN.clear()
    default_ledger().clear()
    assert all(isinstance(each, str) for each in kept)
