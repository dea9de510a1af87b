"""Options that would be ignored, found before they are: ONNX Runtime takes most names in silence.

The names that a version knows stand in its library, so no list of ours can be out of date.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.errors import ModelError
from devicecore.optional import require
from devicecore.ort.package import provider_library
from devicecore.ort.session_attributes import (
    FREE_DIMENSIONS,
    attributes_of,
    is_free_dimension,
)
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.ort.spec import SessionSpec

_OPENVINO = "OpenVINOExecutionProvider"
# Others raise an error themselves, as CUDA's and OpenVINO's do where they are built in.
_IGNORES_UNKNOWN = frozenset({"WebGpuExecutionProvider"})
_LOAD_CONFIG = "it knows load_config, in JSON: {'CPU': {'CACHE_DIR': '...'}}"
_ENTRY = re.compile(rb"\0((?:ep|memory|mlas|optimization|session)\.[a-z0-9_.]*[a-z0-9])(?=\0)")
# What every version knows. A library without it keeps its texts in another form, so that nothing
# can be said of the others either.
_ALWAYS_THERE = ("\0session.disable_prepacking", ".preferredLayout")


def check_provider_options(
    model: str, spec: SessionSpec, options: Iterable[str] | Mapping[str, str]
) -> None:
    """Look whether the provider of *spec* takes *options*, their names or with their values.

    Raises:
        ModelError: It would ignore one of them, or cannot read its value.
    """
    if spec.provider == _OPENVINO and spec.is_plugin and isinstance(options, Mapping):
        _check_load_config(model, options.get("load_config"))
    for name in options:
        if spec.provider == CPU_PROVIDER:
            raise _ignored(model, CPU_PROVIDER, name, "it has no options; see session_options")
        if spec.provider == _OPENVINO and spec.is_plugin and name != "load_config":
            raise _ignored(model, f"the plug-in of {_OPENVINO}", name, _LOAD_CONFIG)
        # There its options follow its own name: "ep.webgpuexecutionprovider.preferredLayout".
        if spec.provider in _IGNORES_UNKNOWN and not _stands_in(_library_of(spec), f".{name}"):
            fix = "look for its name in the documentation of the installed version"
            raise _ignored(model, spec.provider, name, fix)


def _check_load_config(model: str, text: str | None) -> None:
    try:
        config = json.loads(text or "{}")
    except ValueError:
        config = None
    if not isinstance(config, dict) or not all(isinstance(each, dict) for each in config.values()):
        reason = f"its option load_config is {text!r}, no JSON with the options of each device"
        raise ModelError(model, reason, _LOAD_CONFIG)


def check_session_options(model: str, spec: SessionSpec, names: Iterable[str]) -> None:
    """Look whether ONNX Runtime takes the configuration entries *names* in a session of *spec*.

    Those that begin with ``ep.`` and the provider's name in lower case are its options.

    Raises:
        ModelError: It would ignore one of them.
    """
    own = f"ep.{spec.provider.lower()}."
    ort = require("onnxruntime", extra="onnx")
    options = ort.SessionOptions()
    attributes = attributes_of(options)
    for name in names:
        if name.startswith(own):
            check_provider_options(model, spec, [name.removeprefix(own)])
        elif name in attributes or _is_known(options, name):
            continue
        elif callable(getattr(options, name, None)):
            raise ModelError(model, f"the option {name!r} is a method", _instead_of(name))
        elif "." not in name or not _stands_in(_runtime(), f"\0{name}"):
            near = _near(name, [*attributes, *FREE_DIMENSIONS, *_entries(_runtime())])
            fix = (
                f"entries look like 'session.disable_prepacking', or '{own}...'; "
                f"{', '.join((*attributes, *FREE_DIMENSIONS))} can be set too"
            )
            raise _ignored(model, f"onnxruntime {ort.__version__}", name, near or fix)


def _is_known(options: Any, name: str) -> bool:
    """Return whether *name* is of a free dimension, and *options* take sizes of such ones."""
    return is_free_dimension(name) and hasattr(options, f"add_{name.partition('.')[0]}")


def _instead_of(method: str) -> str:
    """Return what to do instead of calling a *method* of ``SessionOptions``."""
    if method == "register_custom_ops_library":
        return "give OnnxModel(custom_op_libraries=[path])"
    if "provider" in method:
        return "the device brings its provider; give OnnxModel(provider_options={provider: {...}})"
    return "call it on devicecore.onnx.session_options(device), for an InferenceSession of your own"


def _near(name: str, known: list[str]) -> str:
    """Return a question that names what of *known* looks like *name*; empty if nothing does."""
    folded = {each.replace("_", "").casefold(): each for each in reversed(known)}
    near = get_close_matches(name.replace("_", "").casefold(), folded, n=3)
    return f"did you mean {' or '.join(repr(folded[each]) for each in near)}?" if near else ""


def _ignored(model: str, who: str, option: str, fix: str) -> ModelError:
    return ModelError(model, f"{who} ignores the option {option!r}", fix)


def _library_of(spec: SessionSpec) -> Path:
    if spec.library is not None:
        return Path(spec.library)
    return provider_library(spec.provider) or _runtime()


def _runtime() -> Path:
    return Path(require("onnxruntime.capi.onnxruntime_pybind11_state", extra="onnx").__file__ or "")


@cache
def _entries(library: Path) -> tuple[str, ...]:
    """Return what looks like the name of an entry in the texts of *library*."""
    with (
        library.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return tuple(sorted({name.decode() for name in _ENTRY.findall(content)}))


@cache
def _stands_in(library: Path, name: str) -> bool:
    """Return whether *name* ends one of the texts in *library*, or none of them can be read."""
    with (
        library.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        texts = [text.encode() + b"\0" for text in (name, *_ALWAYS_THERE)]
        found = [content.find(text) >= 0 for text in texts]
    return found[0] or not any(found)
