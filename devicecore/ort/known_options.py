"""Options that would be ignored, found before they are: ONNX Runtime takes most names in silence.

The names that a version knows stand in its library, so no list of ours can be out of date.
"""

from __future__ import annotations

import mmap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.errors import ModelError
from devicecore.optional import require
from devicecore.ort.package import provider_library
from devicecore.ort.session_attributes import SESSION_ATTRIBUTES
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.ort.spec import SessionSpec

_OPENVINO = "OpenVINOExecutionProvider"
# Others raise an error themselves, as CUDA's and OpenVINO's do where they are built in.
_IGNORES_UNKNOWN = frozenset({"WebGpuExecutionProvider"})
# What every version knows. A library without it keeps its texts in another form, so that nothing
# can be said of the others either.
_ALWAYS_THERE = ("\0session.disable_prepacking", ".preferredLayout")


def check_provider_options(model: str, spec: SessionSpec, options: Iterable[str]) -> None:
    """Look whether the provider of *spec* takes *options*.

    Raises:
        ModelError: It would ignore one of them.
    """
    for name in options:
        if spec.provider == CPU_PROVIDER:
            raise _ignored(model, CPU_PROVIDER, name, "it has no options; see session_options")
        if spec.provider == _OPENVINO and spec.is_plugin and name != "load_config":
            fix = "it knows load_config, in JSON: {'CPU': {'CACHE_DIR': '...'}}"
            raise _ignored(model, f"the plug-in of {_OPENVINO}", name, fix)
        # There its options follow its own name: "ep.webgpuexecutionprovider.preferredLayout".
        if spec.provider in _IGNORES_UNKNOWN and not _stands_in(_library_of(spec), f".{name}"):
            fix = "look for its name in the documentation of the installed version"
            raise _ignored(model, spec.provider, name, fix)


def check_session_options(model: str, spec: SessionSpec, names: Iterable[str]) -> None:
    """Look whether ONNX Runtime takes the configuration entries *names* in a session of *spec*.

    Those that begin with ``ep.`` and the provider's name in lower case are its options.

    Raises:
        ModelError: It would ignore one of them.
    """
    own = f"ep.{spec.provider.lower()}."
    for name in names:
        if name.startswith(own):
            check_provider_options(model, spec, [name.removeprefix(own)])
        elif name in SESSION_ATTRIBUTES:
            continue
        elif "." not in name or not _stands_in(_runtime(), f"\0{name}"):
            version = require("onnxruntime", extra="onnx").__version__
            fix = (
                f"entries look like 'session.disable_prepacking', or '{own}...'; "
                f"{', '.join(SESSION_ATTRIBUTES)} can be set too"
            )
            raise _ignored(model, f"onnxruntime {version}", name, fix)


def _ignored(model: str, who: str, option: str, fix: str) -> ModelError:
    return ModelError(model, f"{who} ignores the option {option!r}", fix)


def _library_of(spec: SessionSpec) -> Path:
    if spec.library is not None:
        return Path(spec.library)
    return provider_library(spec.provider) or _runtime()


def _runtime() -> Path:
    return Path(require("onnxruntime.capi.onnxruntime_pybind11_state", extra="onnx").__file__ or "")


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
