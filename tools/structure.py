"""Print how the code is built, in numbers: ``python tools/structure.py``.

Each row is a question that a reader would ask; the number beside it is what this project aims at.
The files of a call are those whose code runs in it: on the CPU, by kernels for torch.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
TORCH = {"device": "cpu", "kernel": "torch"}
FUNCTION, FRAMEWORK, BACKEND = "medianBlur", "paddle", "xpu"


def main() -> None:
    """Print the table."""
    sources = {path: path.read_text(encoding="utf-8") for path in _files("devicecore", "factories")}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    tested = {path: path.read_text(encoding="utf-8") for path in _files("tests")}
    twice = _classes_named_twice(trees)
    rows: list[tuple[str, object, object]] = [
        ("lines of source", sum(text.count("\n") for text in sources.values()), "<= 49000"),
        (f"source files that name {FUNCTION}", len(_naming(sources, FUNCTION)), ""),
        (f"test files that name {FUNCTION}", len(_naming(tested, FUNCTION)), ""),
        (f"source files that name {FRAMEWORK}", len(_naming(sources, FRAMEWORK)), ""),
        (f"source files that name {BACKEND}", len(_naming(sources, BACKEND)), ""),
        ("most tables that one cv function stands in", _most_tables(trees), "<= 2"),
        ("files open in a warm patched call", len(_patched_call()), "<= 7"),
        ("files open in a warm loader sample", len(_loader_sample()), "<= 14"),
        ("class names that exist twice", len(twice), "0"),
    ]
    for what, value, limit in rows:
        print(f"{what:<45} {value:>8} {limit:>9}")
    if twice:
        print("twice:", ", ".join(twice))


def _files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _naming(texts: dict[Path, str], word: str) -> list[Path]:
    """Return the files with *word* in a name or in a string of code, in any case."""
    return [path for path, text in texts.items() if word.lower() in _code(text).lower()]


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def _classes_named_twice(trees: dict[Path, ast.Module]) -> list[str]:
    names = Counter(
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, times in names.items() if times > 1)


def _most_tables(trees: dict[Path, ast.Module]) -> str:
    """Return in how many tables of modules one function's name stands, and which function it is."""
    from devicecore.cv import catalog

    functions = set(catalog.TORCH)
    tables: dict[str, int] = defaultdict(int)
    for tree in trees.values():
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                for name in functions & set(_words(statement.value)):
                    tables[name] += 1
    most = max(tables, key=lambda name: tables[name])
    return f"{tables[most]} ({most})"


def _words(table: ast.expr) -> Iterator[str]:
    """Yield the strings and the names in the displays and comprehensions of *table*."""
    for node in ast.walk(table):
        if isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
                elif isinstance(part, ast.Name):
                    yield part.id
                elif isinstance(part, ast.Attribute):
                    yield part.attr


def _patched_call() -> set[str]:
    import cv2
    import numpy as np

    from devicecore.migrate import PipelineMigrator

    picture = np.zeros((48, 64, 3), np.uint8)
    with PipelineMigrator({"cv2.resize": TORCH}, strict=True):
        for _ in range(3):
            cv2.resize(picture, (32, 24))
        return _open_in(lambda: cv2.resize(picture, (32, 24)))


class Photos:
    """A dataset as people write them."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        import cv2
        import numpy as np

        picture = np.full((48, 64, 3), index, np.uint8)
        small = cv2.resize(picture, (32, 24))
        return small.astype(np.float32) / 255


def _loader_sample() -> set[str]:
    from devicecore.migrate import DeviceLoader

    loader = DeviceLoader(Photos(), {"Photos/__getitem__": TORCH}, batch_size=1, strict=True)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    opened = _open_in(lambda: next(batches))
    list(batches)
    return opened


def _open_in(call: Callable[[], object]) -> set[str]:
    """Return the files of the package that *call* runs code of, in this thread."""
    opened: set[str] = set()
    package = str(ROOT / "devicecore")

    def look(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            opened.add(frame.f_code.co_filename)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return opened


if __name__ == "__main__":
    main()
