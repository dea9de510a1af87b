"""What tells one model from another: a hash of its file and of the files that hold its weights."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path

from devicecore.errors import ModelError
from devicecore.ort.model_file import checked_model
from devicecore.trusted_files import open_regular

_READ_BYTES = 1 << 20
_LONGEST_NAME = 4095
_ABSOLUTE = (b"/", b"\\")
# As ONNX writes the place of a tensor that lies elsewhere: the key's text, then the value's length
# and text. A text that only looks like it names no file, and so changes nothing.
_LOCATION = re.compile(rb"\x0a\x08location\x12(?:([\x01-\x7f])|([\x80-\xff][\x01-\x7f]))")


def model_digest(model: bytes | str | Path) -> str:
    """Return the SHA-256 of *model* in hexadecimal digits, weights in other files included.

    Two models with the same graph and other weights are told apart, wherever the weights lie. Only
    files that ONNX Runtime takes weights from count: regular ones below the model's own folder.

    Args:
        model: The file, or its bytes, whose other files then lie in the working directory.

    Raises:
        ModelError: The file cannot be read or is plainly no model.
    """
    checked = checked_model(model)
    if isinstance(checked, bytes):
        return _digest(checked, Path(), [Path.cwd()])
    try:
        with (
            open_regular(Path(checked)) as file,
            mmap(file.fileno(), 0, access=ACCESS_READ) as content,
        ):
            folder = Path(checked).parent
            return _digest(content, folder, [folder, Path(os.path.realpath(checked)).parent])
    except OSError as error:
        raise ModelError(checked, f"it cannot be read ({error.strerror})") from error


def _digest(content: bytes | mmap, folder: Path, roots: list[Path]) -> str:
    digest = sha256(content)
    for path in sorted(_external_files(content, folder, roots)):
        try:
            with open_regular(path) as file:
                digest.update(os.fstat(file.fileno()).st_size.to_bytes(8, "big"))
                while chunk := file.read(_READ_BYTES):
                    digest.update(chunk)
        except OSError:  # ONNX Runtime says what is wrong with it
            continue
    return digest.hexdigest()


def _external_files(content: bytes | mmap, folder: Path, roots: list[Path]) -> set[Path]:
    """Return the files that ONNX Runtime would take weights from, without opening any.

    It takes those that really lie below the model's folder, or below that of the file that a link
    in the model's place leads to.
    """
    real_roots = [os.path.realpath(root) for root in roots]
    files: set[Path] = set()
    last = b""
    for found in _LOCATION.finditer(content):
        size = _varint(found[1] or found[2])
        text = content[found.end() : found.end() + size]
        # Most tensors of a model lie in one file. What only looks like a name may be long, and
        # there may be a million of them.
        if text == last or size > _LONGEST_NAME or text.startswith(_ABSOLUTE):
            continue
        last = text
        path = folder / os.fsdecode(text.partition(b"\0")[0])
        with suppress(OSError, ValueError):  # no file can have such a name
            if stat.S_ISREG(path.stat().st_mode):
                real = Path(os.path.realpath(path))
                if any(real.is_relative_to(root) for root in real_roots):
                    files.add(real)
    return files


def _varint(raw: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(raw))
