"""What a model is opened with, looked at when it is given and not when it is used."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from numbers import Number, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from devicecore.names import PROVIDER_TYPES
from devicecore.names.types import known_type
from devicecore.ort import CACHE_POLICIES, PRECISIONS, PROVIDERS
from devicecore.ort.session_attributes import check_attribute, flattened

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    is_whole = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is None or (is_whole and threads >= 1):
        return threads  # type: ignore[no-any-return]
    msg = f"threads is {threads!r}; it is a whole number from 1, or None"
    raise ValueError(msg)


def checked_share(min_nodes: float | None) -> float | None:
    """Return *min_nodes*.

    Raises:
        ValueError: It is no share of the nodes, nor None.
    """
    given: Any = min_nodes
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if min_nodes is None or (is_number and 0 < min_nodes <= 1):
        return min_nodes
    msg = f"min_nodes is {min_nodes!r}; it is a share of the nodes, above 0 and up to 1"
    raise ValueError(msg)


def checked_options(
    options: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, dict[str, str]]:
    """Return the options of each provider as ONNX Runtime takes them; names count in any case.

    Raises:
        TypeError: It is no mapping of texts to mappings, or a value is nothing to be written.
        ValueError: There is no such provider, or one is named twice.
    """
    folded = {name.casefold(): name for name in PROVIDERS}
    checked: dict[str, dict[str, str]] = {}
    for name, given in _checked_mapping("provider_options", options).items():
        provider = folded.get(name.casefold())
        if provider is None:
            meant = known_type(name)
            near = [each for each, served in PROVIDER_TYPES.items() if served == meant]
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            msg = f"no provider is called {name!r}; known are {', '.join(PROVIDERS)}{hint}"
            raise ValueError(msg)
        if provider in checked:
            msg = f"the options of {provider} are given twice, in other case; give them once"
            raise ValueError(msg)
        checked[provider] = texts(f"provider_options of {provider}", given)
    return checked


def checked_session_options(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the options of sessions as texts.

    Raises:
        TypeError: It is no mapping of texts, or a value is nothing to be written.
        ValueError: An attribute of ONNX Runtime's ``SessionOptions`` has no such value.
    """
    single: dict[str, Any] = {}
    for name, value in _checked_mapping("session_options", options).items():
        single |= flattened(name, value)
    for name, value in single.items():
        check_attribute(name, value)
    return texts("session_options", single)


def checked_libraries(libraries: Iterable[str | Path]) -> tuple[str, ...]:
    """Return the paths of *libraries*.

    Raises:
        TypeError: One is no path, or the whole is one path and no list.
    """
    what = "custom_op_libraries"
    if isinstance(libraries, str | os.PathLike):
        msg = f"{what} is one path; give a list: [{str(libraries)!r}]"
        raise TypeError(msg)
    if isinstance(libraries, bytes | Mapping) or not isinstance(libraries, Iterable):
        msg = f"{what} is {libraries!r}; it is a list of paths, or () for none"
        raise TypeError(msg)
    paths: list[Any] = list(libraries)
    for path in paths:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            msg = f"{what} has {path!r} in it, which is no path of a file"
            raise TypeError(msg)
    return tuple(os.fsdecode(path) for path in paths)


def texts(what: str, options: Mapping[str, Any] | None) -> dict[str, str]:
    """Return *options* with texts for values: ``"1"`` and ``"0"`` for truth values.

    Raises:
        TypeError: It is no mapping of texts, or a value is nothing to be written.
    """
    return {
        name: _written(what, name, value) for name, value in _checked_mapping(what, options).items()
    }


def _checked_mapping(what: str, options: Any) -> Mapping[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        msg = f"{what} is {options!r}; it is a mapping of names to values, or None"
        raise TypeError(msg)
    for name in options:
        if not isinstance(name, str):
            msg = f"{what} has the name {name!r}; names of options are texts"
            raise TypeError(msg)
    return options


def _written(what: str, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    # Members of ONNX Runtime's enumerations share no base.
    if isinstance(value, str | Number) or hasattr(type(value), "__members__"):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if name == "load_config" and isinstance(value, Mapping):  # OpenVINO takes it as JSON
        return json.dumps(value)
    msg = f"{what}: {name} is {value!r}; a value is a text, a number, a path, True or False"
    raise TypeError(msg)


def _one_of(what: str, value: str, possible: Sequence[str]) -> str:
    if value in possible:
        return value
    msg = f"{what} is {value!r}; it can be {' or '.join(map(repr, possible))}"
    raise ValueError(msg)
