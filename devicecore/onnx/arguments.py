"""What a model is opened with, looked at when it is given and not when it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from devicecore.names import PROVIDER_TYPES
from devicecore.names.types import known_type
from devicecore.ort import CACHE_POLICIES, PRECISIONS, PROVIDERS
from devicecore.ort.session_attributes import SESSION_ATTRIBUTES, check_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from devicecore.ort import CachePolicy, Precision


def checked_source(model: Any) -> bytes | Path:
    """Return the bytes of a model, or the path of its file.

    Raises:
        TypeError: *model* is neither.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model)
    if isinstance(model, str | Path):
        return Path(model)
    msg = f"a model is a file's path or its bytes, not a {type(model).__name__}"
    raise TypeError(msg)


def checked_precision(precision: str) -> Precision:
    """Return *precision*.

    Raises:
        ValueError: There is no such precision.
    """
    return cast("Precision", _one_of("precision", precision, PRECISIONS))


def checked_policy(cache: str) -> CachePolicy:
    """Return *cache*.

    Raises:
        ValueError: There is no such policy.
    """
    return cast("CachePolicy", _one_of("cache", cache, CACHE_POLICIES))


def checked_threads(threads: Any) -> int | None:
    """Return *threads*.

    Raises:
        ValueError: It is no number from 1, nor None.
    """
    if threads is None or (isinstance(threads, int) and threads >= 1):
        return threads
    msg = f"threads is {threads!r}; it is a whole number from 1, or None"
    raise ValueError(msg)


def checked_share(min_nodes: float | None) -> float | None:
    """Return *min_nodes*.

    Raises:
        ValueError: It is no share of the nodes, nor None.
    """
    if min_nodes is None or 0 < min_nodes <= 1:
        return min_nodes
    msg = f"min_nodes is {min_nodes!r}; it is a share of the nodes, above 0 and up to 1"
    raise ValueError(msg)


def checked_options(
    options: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, dict[str, str]]:
    """Return the options of each provider as ONNX Runtime takes them; names count in any case.

    Raises:
        ValueError: There is no such provider, or one is named twice.
    """
    folded = {name.casefold(): name for name in PROVIDERS}
    checked: dict[str, dict[str, str]] = {}
    for name, given in (options or {}).items():
        provider = folded.get(str(name).casefold())
        if provider is None:
            meant = known_type(str(name))
            near = [each for each, served in PROVIDER_TYPES.items() if served == meant]
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            msg = f"no provider is called {name!r}; known are {', '.join(PROVIDERS)}{hint}"
            raise ValueError(msg)
        if provider in checked:
            msg = f"the options of {provider} are given twice, in other case; give them once"
            raise ValueError(msg)
        checked[provider] = texts(given)
    return checked


def checked_session_options(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the options of sessions as texts.

    Raises:
        ValueError: An attribute of ONNX Runtime's ``SessionOptions`` has no such value.
    """
    found = texts(options)
    for name in SESSION_ATTRIBUTES.keys() & found.keys():
        check_attribute(name, found[name])
    return found


def checked_libraries(libraries: Iterable[str | Path]) -> tuple[str, ...]:
    """Return the paths of *libraries*.

    Raises:
        TypeError: One is no path, or the whole is one path and no list.
    """
    if isinstance(libraries, str | Path):
        msg = f"custom_op_libraries is one path; give a list: [{str(libraries)!r}]"
        raise TypeError(msg)
    return tuple(os.fspath(library) for library in libraries)


def texts(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Return *options* with texts for values: ``"1"`` and ``"0"`` for truth values."""
    return {
        key: str(int(value)) if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }


def _one_of(what: str, value: str, possible: Sequence[str]) -> str:
    if value in possible:
        return value
    msg = f"{what} is {value!r}; it can be {' or '.join(map(repr, possible))}"
    raise ValueError(msg)
