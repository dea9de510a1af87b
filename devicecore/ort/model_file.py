"""A model's file, looked at before ONNX Runtime does: it answers all faults with one sentence."""

from __future__ import annotations

import os
from pathlib import Path

from devicecore.errors import ModelError
from devicecore.trusted_files import open_regular

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_HEAD_BYTES = 256


def checked_model(model: bytes | str | Path) -> bytes | str:
    """Return *model* as ONNX Runtime takes it, after a look at what it is.

    Raises:
        ModelError: There is no such file, or it is plainly no model: a folder, an empty file, a web
            page, a pointer of git-lfs, or a pipe or device.
    """
    if isinstance(model, bytes):
        _look(model[:_HEAD_BYTES], len(model), described(model))
        return model
    path = Path(model)
    if path.is_dir():
        raise ModelError(str(path), "it is a folder", "give the .onnx file inside it")
    try:
        if path.exists() and not path.is_file():
            raise ModelError(
                str(path), "it is no regular file", "give the path of a file, or bytes"
            )
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        raise ModelError(str(path), "there is no such file") from None
    except OSError as error:
        raise ModelError(str(path), f"it cannot be read ({error.strerror})") from error
    except ValueError as error:  # a null character, or one that the system cannot write
        raise ModelError(str(path), f"it cannot be the path of a file ({error})") from None
    _look(head, size, str(path))
    return str(path)


def described(model: bytes | str | Path) -> str:
    """Return a few words for *model* that fit into a message."""
    return f"<{len(model):,} bytes>" if isinstance(model, bytes) else str(model)


def _look(head: bytes, size: int, name: str) -> None:
    if size == 0:
        raise ModelError(name, "it is empty", "copy or download it again")
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise ModelError(name, "it is a web page, not a model", "download the file itself")
    if start.startswith(_LFS_POINTER):
        raise ModelError(name, "it is a git-lfs pointer, not the model", "run `git lfs pull`")
