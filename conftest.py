"""Makes every example in the README, the docs and the docstrings a test."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

# A Markdown page is one program: its blocks run from top to bottom and share their names.
_pages = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
)
_docstrings = Sybil(
    parsers=[DocTestParser()],
    patterns=["devicecore/*.py", "devicecore/*/*.py", "devicecore/*/*/*.py", "factories/*/*.py"],
)

pytest_collect_file = (_pages + _docstrings).pytest()
