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
from devicecore.ort.model_file import checked_model, described
from devicecore.trusted_files import open_regular

_READ_BYTES = 1 << 20
_LONGEST_NAME = 4095
_MOST_FILES = 1 << 16  # and ONNX Runtime maps each; Linux allows a process fewer
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
        ModelError: The file cannot be read, is plainly no model, or names 65,536 further files.
    """
    checked = checked_model(model)
    try:
        if isinstance(checked, bytes):
            return _digest(checked, Path(), [Path.cwd()])
        with (
            open_regular(Path(checked)) as file,
            mmap(file.fileno(), 0, access=ACCESS_READ) as content,
        ):
            folder = Path(checked).parent
            return _digest(content, folder, [folder, Path(os.path.realpath(checked)).parent])
    except _TooManyFilesError:
        reason = f"it names more than {_MOST_FILES:,} files of weights"
        raise ModelError(described(model), reason, "keep the weights in one file") from None
    except OSError as error:
        raise ModelError(described(model), f"it cannot be read ({error.strerror})") from error


class _TooManyFilesError(Exception):
    """A model names more files than a process can map."""


def _digest(content: bytes | mmap, folder: Path, roots: list[Path]) -> str:
    digest = sha256(content)
    for path in sorted(_external_files(content, folder, roots)):
        try:
            with open_regular(Path(path)) as file:
                digest.update(os.fstat(file.fileno()).st_size.to_bytes(8, "big"))
                while chunk := file.read(_READ_BYTES):
                    digest.update(chunk)
        except OSError:  # ONNX Runtime says what is wrong with it
            continue
    return digest.hexdigest()


def _external_files(content: bytes | mmap, folder: Path, roots: list[Path]) -> set[str]:
    """Return the files that ONNX Runtime would take weights from, without opening any.

    It takes those that really lie below the model's folder, or below that of the file that a link
    in the model's place leads to.
    """
    places = _Places([os.path.realpath(root) for root in roots])
    base = os.fsencode(folder)
    files: set[str] = set()
    seen: set[int] = set()
    for found in _LOCATION.finditer(content):
        size = _varint(found[1] or found[2])
        text = content[found.end() : found.end() + size]
        # Most tensors of a model lie in one file. What only looks like a name may be long, and
        # there may be a million of them, so that not the texts are kept.
        if hash(text) in seen or size > _LONGEST_NAME or text.startswith(_ABSOLUTE):
            continue
        seen.add(hash(text))
        if len(seen) > _MOST_FILES:
            raise _TooManyFilesError
        with suppress(OSError, ValueError):  # no file can have such a name
            path = os.fsdecode(os.path.join(base, text.partition(b"\0")[0]))  # noqa: PTH118 - quick
            if (real := places.real_file(path)) is not None:
                files.add(real)
    return files


class _Places:
    """Where files really are; folders are looked up once, since a model may name 100,000 files."""

    def __init__(self, roots: list[str]) -> None:
        self._roots = [os.path.join(root, "") for root in roots]  # noqa: PTH118 - texts
        self._folders: dict[str, str] = {}

    def real_file(self, path: str) -> str | None:
        """Return where the regular file *path* really is, or None if that is below no root.

        Raises:
            OSError: There is no file.
        """
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            real = os.path.realpath(path)
            status = os.lstat(real)
        else:
            folder, name = os.path.split(path)
            if folder not in self._folders:
                self._folders[folder] = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118
            real = self._folders[folder] + name
        if stat.S_ISREG(status.st_mode) and real.startswith(tuple(self._roots)):
            return real
        return None


def _varint(raw: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(raw))
