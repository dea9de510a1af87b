"""Write the signatures of `devicecore.cv` for editors and type checkers, from those of OpenCV.

``python tools/cv_signatures.py`` writes the file; a test compares it with what this would write.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

from devicecore.cv import catalog

TARGET = Path(catalog.__file__).with_name("signatures.pyi")
_HEAD = '''"""OpenCV's functions on the current device; made by tools/cv_signatures.py."""

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

Images: TypeAlias = Any
"""An array or a tensor of one image, or of a batch, or a list of them."""
'''


def text() -> str:
    """Return the whole file."""
    names = sorted({*catalog.TORCH, *catalog.HOST} - {"CLAHE_apply"})
    found: dict[str, list[ast.FunctionDef]] = {name: [] for name in names}
    for node in ast.parse(_opencv().read_text(encoding="utf-8")).body:
        is_one = isinstance(node, ast.FunctionDef) and node.name in found
        if is_one and "UMat" not in ast.unparse(node):
            assert isinstance(node, ast.FunctionDef)
            found[node.name].append(node)
    missing = [name for name, several in found.items() if not several]
    if missing:
        msg = f"OpenCV's stub has no signature of {', '.join(missing)}"
        raise LookupError(msg)
    parts = [_one(each, len(found[name])) for name in names for each in found[name]]
    exported = "".join(f'    "{name}",\n' for name in names)
    return f"{_HEAD}\n__all__ = [\n{exported}]\n\n" + "\n".join(parts) + "\n"


def _opencv() -> Path:
    spec = find_spec("cv2")
    assert spec is not None  # the tool is for where it is installed
    assert spec.origin is not None
    return Path(spec.origin).with_name("__init__.pyi")


def _one(node: ast.FunctionDef, count: int) -> str:
    for argument in (*node.args.args, *node.args.kwonlyargs):
        argument.annotation = _annotation(argument.annotation)
    returned = _annotation(node.returns)
    mark = "@overload\n" if count > 1 else ""
    assert returned is not None
    result = ast.unparse(returned)
    if result != "Images":  # of a batch, a list of them
        result += " | Any"
    return f"{mark}def {node.name}({ast.unparse(node.args)}) -> {result}: ..."


def _annotation(node: ast.expr | None) -> ast.expr | None:
    """Return a type with names for OpenCV's own ones that all checkers know."""
    if node is None:
        return None
    written = ast.unparse(node).replace("cv2.typing.MatLike", "Images")
    written = written.replace("_typing.Sequence", "Sequence")
    is_own = "cv2" in written or "Algorithm" in written
    return ast.parse("Any" if is_own else written, mode="eval").body


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
