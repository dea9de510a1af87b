"""For all tests: every example in the README, the docs and the docstrings is one."""

from __future__ import annotations

import sys
from doctest import ELLIPSIS
from typing import TYPE_CHECKING, Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.short_run"]


def _as_main_program(names: dict[str, Any]) -> None:
    names["__name__"] = "__main__"
    if choice_log := sys.modules.get("devicecore.cv.choice_log"):
        choice_log._said.clear()  # noqa: SLF001 - a page is a program, to which it says all once


# A Markdown page is one program: its blocks run from top to bottom and share their names.
_pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    setup=_as_main_program,
)
_docstrings = Sybil(
    parsers=[DocTestParser(ELLIPSIS)],
    patterns=["devicecore/*.py", "devicecore/*/*.py", "devicecore/*/*/*.py", "factories/*/*.py"],
)

pytest_collect_file = (_pages + _docstrings).pytest()


@pytest.fixture(autouse=True, scope="session")
def _evidence_of_this_run_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Believe nothing that an earlier run found out, and leave the user's cache alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
