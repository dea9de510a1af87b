"""What tells one model from another: a hash of its file and of the files that hold its weights."""

from __future__ import annotations

import re
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.errors import ModelError
from devicecore.ort.model_file import checked_model

if TYPE_CHECKING:
    from collections.abc import Iterator

_READ_BYTES = 1 << 20
# As ONNX writes the place of a tensor that lies elsewhere: the key's text, then the value's length
# and text. A text that only looks like it names no file, and so changes nothing.
_LOCATION = re.compile(rb"\x0a\x08location\x12(?:([\x01-\x7f])|([\x80-\xff][\x01-\x7f]))")


def model_digest(model: bytes | str | Path) -> str:
    """Return the SHA-256 of *model* in hexadecimal digits, weights in other files included.

    Two models with the same graph and other weights are told apart, wherever the weights lie.

    Args:
        model: The file, or its bytes, whose other files then lie in the working directory.

    Raises:
        ModelError: The file cannot be read or is plainly no model.
    """
    checked = checked_model(model)
    if isinstance(checked, bytes):
        return _digest(checked, Path())
    path = Path(checked)
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return _digest(content, path.parent)
    except OSError as error:
        raise ModelError(checked, f"it cannot be read ({error.strerror})") from error


def _digest(content: bytes | mmap, folder: Path) -> str:
    digest = sha256(content)
    for name in sorted(set(_locations(content))):
        for chunk in _chunks(folder / name):
            digest.update(chunk)
    return digest.hexdigest()


def _locations(content: bytes | mmap) -> Iterator[str]:
    for found in _LOCATION.finditer(content):
        size = _varint(found[1] or found[2])
        text = content[found.end() : found.end() + size]
        yield text.decode("utf-8", "replace")


def _varint(raw: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(raw))


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield what *path* holds; nothing where there is no such file, which ONNX Runtime refuses."""
    try:
        if not path.is_file():
            return
    except (OSError, ValueError):  # no file can have such a name
        return
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            yield chunk
