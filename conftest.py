"""Makes every example in the README, the docs and the docstrings a test."""

from doctest import ELLIPSIS

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

# A Markdown page is one program: its blocks run from top to bottom and share their names.
_pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
)
_docstrings = Sybil(
    parsers=[DocTestParser(ELLIPSIS)],
    patterns=["devicecore/*.py", "devicecore/*/*.py", "devicecore/*/*/*.py", "factories/*/*.py"],
)

pytest_collect_file = (_pages + _docstrings).pytest()
