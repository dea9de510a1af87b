"""Describes an error of the program in one line, with the program's own line that raised it."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, TracebackType

_OWN = str(Path(__file__).parents[2])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def describe_error(error: BaseException) -> str:
    """Return an error with the last line of the program's own that led to it."""
    known = [(code, line) for code, line in _lines(error.__traceback__) if not _is_own(code)]
    programs = [each for each in known if not each[0].co_filename.startswith(_LIBRARIES)]
    place = ""
    if known:
        code, line = (programs or known)[-1]
        place = f" in {code.co_name} ({Path(code.co_filename).name}:{line})"
    return f"{type(error).__name__}{place}: {error}"


def _lines(traceback: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code, traceback.tb_lineno
        traceback = traceback.tb_next


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(_OWN)
