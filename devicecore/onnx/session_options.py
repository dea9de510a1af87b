"""Options for programs that open their own ``InferenceSession``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import NotLiveError
from devicecore.onnx.arguments import checked_precision, checked_threads
from devicecore.optional import require
from devicecore.ort.creation import add_provider, new_options, thread_limit
from devicecore.ort.dialects import Preferences
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.names import DeviceName
    from devicecore.ort import Precision


def session_options(
    device: str | DeviceName | Device,
    *,
    precision: Precision = "f32",
    threads: int | None = None,
) -> Any:
    """Return ONNX Runtime's ``SessionOptions`` for sessions on *device*.

    Use them as ``InferenceSession(path, session_options(device), enable_fallback=0)``, without
    ``providers=``, which would drop the provider that they hold. They reach plug-ins too, which
    ``providers=`` does not.

    Args:
        device: The device, or its name.
        precision: See `OnnxModel`.
        threads: See `OnnxModel`.

    Raises:
        ValueError: *precision* or *threads* is none.
        NotLiveError: The device does not work for ONNX Runtime.
        UnknownDeviceError: There is no such device.
        InvalidDeviceNameError: *device* is no device name.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    wanted = Preferences(checked_precision(precision), "", thread_limit(checked_threads(threads)))
    ort = require("onnxruntime", extra="onnx")
    found = default_runtime().device(device, "onnx")
    if found.session is None:
        raise NotLiveError(found.name, "absent", "ONNX Runtime has no provider for it")
    options = new_options(ort, threads)
    add_provider(ort, options, found.session, wanted)
    return options
