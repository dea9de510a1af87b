"""``pytest --short``, which `make test` runs: a few cases of each test, and few random examples.

Every test function runs. Marks say what differs: ``long`` tests are left to `make test-all`, and
``every_case`` tests, whose cases are the public functions, keep all of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_CASES = 5
_EXAMPLES = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--short", action="store_true", help="a few cases of each test")


@pytest.hookimpl(trylast=True)  # after the profile that `tests/conftest.py` loads
def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis look at few examples."""
    if config.getoption("short"):
        settings.register_profile("short", settings.default, max_examples=_EXAMPLES)
        settings.load_profile("short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is long, and most cases of tests that have many."""
    if not config.getoption("short"):
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("long") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = {id(item) for several in cases.values() for item in _some(several)}
    left = [item for item in items if id(item) not in kept]
    items[:] = [item for item in items if id(item) in kept]
    config.hook.pytest_deselected(items=left)


def _some(cases: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield some cases of a test, from the first to the last one, evenly spread."""
    if len(cases) <= MOST_CASES or cases[0].get_closest_marker("every_case"):
        yield from cases
        return
    for place in range(MOST_CASES):
        yield cases[round(place * (len(cases) - 1) / (MOST_CASES - 1))]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was left out."""
    if config.getoption("short"):
        terminalreporter.write_line(
            "a short run: `make test-all` adds the other cases of each test, the long searches"
            " against OpenCV and NumPy, and more random programs"
        )
