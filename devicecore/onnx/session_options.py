"""Options for programs that open their own ``InferenceSession``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import NotLiveError
from devicecore.onnx.arguments import (
    checked_precision,
    checked_session_options,
    checked_threads,
)
from devicecore.onnx.model import model_source
from devicecore.optional import require
from devicecore.ort.engines import engine_folder
from devicecore.ort.known_options import check_session_options
from devicecore.ort.provider_options import Preferences
from devicecore.ort.session_creation import add_provider, new_options, thread_limit
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from devicecore.device import Device
    from devicecore.names import DeviceName
    from devicecore.onnx.model import OnnxModel
    from devicecore.ort import Precision


def session_options(
    device: str | DeviceName | Device | Any,
    *,
    precision: Precision = "f32",
    threads: int | None = None,
    session_options: Mapping[str, object] | None = None,
    model: bytes | str | Path | OnnxModel | None = None,
) -> Any:
    """Return ONNX Runtime's ``SessionOptions`` for sessions on *device*.

    Use them as ``InferenceSession(path, session_options(device), enable_fallback=0)``, without
    ``providers=``, which would drop the provider that they hold. They reach plug-ins too, which
    ``providers=`` does not.

    Args:
        device: The device, its name, or what else `device_scope` takes.
        precision: See `OnnxModel`.
        threads: See `OnnxModel`.
        session_options: See `OnnxModel`.
        model: The file, or the bytes, that the session will open, or an `OnnxModel` of them: what
            the provider compiles of it is kept in a folder of its own in the cache. Without it
            nothing is kept.

    Raises:
        TypeError: *model* or *session_options* are of another kind.
        ValueError: *precision* or *threads* is none, or an option has no such value.
        ModelError: ONNX Runtime would ignore one of *session_options*; *model* cannot be read.
        EngineCacheError: The folder for engines cannot be used.
        NotLiveError: The device does not work for ONNX Runtime.
        UnknownDeviceError: There is no such device.
        InvalidDeviceNameError: *device* is not a device name.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    precision, limit = checked_precision(precision), thread_limit(checked_threads(threads))
    entries = checked_session_options(session_options)
    source = None if model is None else model_source(model)
    ort = require("onnxruntime", extra="onnx")
    found = default_runtime().device(device, "onnx")
    if found.session is None:
        raise NotLiveError(found.name, "absent", "ONNX Runtime has no provider for it")
    check_session_options("for a session", found.session, entries)
    options = new_options(ort, threads, entries)
    engines = ""
    if source is not None:
        hardware = f"{found.device_type} {found.attributes.description}"
        engines = engine_folder(source, found.session, hardware, precision)
    add_provider(ort, options, found.session, Preferences(precision, engines, limit))
    return options
