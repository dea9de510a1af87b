"""Options for programs that open their own ``InferenceSession``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import NotLiveError
from devicecore.onnx.arguments import (
    checked_precision,
    checked_session_options,
    checked_threads,
)
from devicecore.optional import require
from devicecore.ort.creation import add_provider, new_options, thread_limit
from devicecore.ort.dialects import Preferences
from devicecore.ort.known_options import check_session_options
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.device import Device
    from devicecore.names import DeviceName
    from devicecore.ort import Precision


def session_options(
    device: str | DeviceName | Device,
    *,
    precision: Precision = "f32",
    threads: int | None = None,
    session_options: Mapping[str, object] | None = None,
) -> Any:
    """Return ONNX Runtime's ``SessionOptions`` for sessions on *device*.

    Use them as ``InferenceSession(path, session_options(device), enable_fallback=0)``, without
    ``providers=``, which would drop the provider that they hold. They reach plug-ins too, which
    ``providers=`` does not.

    Args:
        device: The device, or its name.
        precision: See `OnnxModel`.
        threads: See `OnnxModel`.
        session_options: See `OnnxModel`.

    Raises:
        ValueError: *precision* or *threads* is none, or an option has no such value.
        ModelError: ONNX Runtime would ignore one of *session_options*.
        NotLiveError: The device does not work for ONNX Runtime.
        UnknownDeviceError: There is no such device.
        InvalidDeviceNameError: *device* is no device name.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    wanted = Preferences(checked_precision(precision), "", thread_limit(checked_threads(threads)))
    entries = checked_session_options(session_options)
    ort = require("onnxruntime", extra="onnx")
    found = default_runtime().device(device, "onnx")
    if found.session is None:
        raise NotLiveError(found.name, "absent", "ONNX Runtime has no provider for it")
    check_session_options("for a session", found.session, entries)
    options = new_options(ort, threads, entries)
    add_provider(ort, options, found.session, wanted)
    return options
