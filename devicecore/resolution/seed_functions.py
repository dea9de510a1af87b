"""Short answers for programs that know a word or a list of providers, and no devices.

Only what really works counts. Missing hardware is no error here, unless ``strict=True`` asks for
one; a fallback is in the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.device import Device
from devicecore.errors import ConfigurationError, DeviceCoreError, EngineCacheError, NotLiveError
from devicecore.ledger import default_ledger
from devicecore.names import checked_framework
from devicecore.ort.engines import engine_folder
from devicecore.ort.package import provider_library
from devicecore.ort.provider_options import (
    CUDA_PROVIDER,
    Preferences,
    in_between,
    lost_precision,
    provider_options,
)
from devicecore.ort.session_creation import thread_limit
from devicecore.ort.spec import CPU_PROVIDER
from devicecore.resolution.resolution import AUTO, automatic_types, resolve
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from pathlib import Path

    from devicecore.names import DeviceName
    from devicecore.onnx.model import OnnxModel
    from devicecore.runtime import Runtime

CPU = "cpu"
_ACCELERATOR = "a GPU or NPU"
_FIX = "run `devicecore devices` for the reasons"
_TORCH, _ONNX = "torch", "onnx"


def torch_available(*, runtime: Runtime | None = None) -> bool:
    """Return whether torch is installed and computes; it is imported in a child process only.

    Where that takes too long, which is no absence, the ledger says so, and a later call tries it
    again.
    """
    try:
        (runtime or default_runtime()).registry.get_factory("CPU", _TORCH)
    except ConfigurationError:
        raise
    except DeviceCoreError as error:
        if isinstance(error, NotLiveError) and error.state == "timed_out":
            default_ledger().record("torch_available", _TORCH, "none for now", error.reason)
        return False
    return True


def is_gpu_available(backend: str = _ONNX, *, runtime: Runtime | None = None) -> bool:
    """Return whether a device that is no CPU is live for *backend*, ``"onnx"`` or ``"torch"``.

    A runtime for GPUs that found only the CPU, as OpenVINO may, does not count.
    """
    return _accelerator(backend, runtime or default_runtime()) is not None


def resolve_device(
    use_gpu: bool, backend: str = _ONNX, *, strict: bool = False, runtime: Runtime | None = None
) -> str:
    """Return the word for the best device: ``"cuda"``, ``"mps"``, ``"tensorrt"``, ``"cpu"``.

    Args:
        use_gpu: Whether a device that is no CPU is wanted; if none is live, the answer is ``"cpu"``
            and the ledger has an entry.
        backend: ``"onnx"`` or ``"torch"``; where torch is not there, ONNX is asked instead.
        strict: Raise where the wish cannot be met.
        runtime: Whose devices; None for those of this process.

    Returns:
        A word in lower case, with the index if that is not 0; a ROCm GPU is ``"cuda"`` to torch.

    Raises:
        NotLiveError: With *strict*, a device that is no CPU is wanted and none is live.
        TypeError: *use_gpu* is a text, which would count as true whatever it says.
        ValueError: *backend* is neither of the two.
    """
    wanted: Any = use_gpu
    if isinstance(wanted, str):
        msg = f"use_gpu is {use_gpu!r}; it is True or False, and resolve({use_gpu!r}) takes a name"
        raise TypeError(msg)
    source = runtime or default_runtime()
    asked = _checked(backend)
    if not use_gpu:
        return CPU
    if asked == _TORCH and not torch_available(runtime=source):
        asked = _ONNX
    device = _accelerator(asked, source)
    if device is not None:
        return _word(device, asked)
    reason = f"none is live for {asked}"
    if strict:
        raise NotLiveError(_ACCELERATOR, "absent", reason, _FIX)
    default_ledger().record("resolve_device", _ACCELERATOR, CPU, reason)
    return CPU


def get_providers(
    device: str | DeviceName | Device | Any | None = None,
    *,
    model: bytes | str | Path | OnnxModel | None = None,
    strict: bool = False,
    runtime: Runtime | None = None,
) -> list[str | tuple[str, dict[str, str]]]:
    """Return what to pass as ``providers=`` to ONNX Runtime's ``InferenceSession``.

    Args:
        device: Whose provider, by name, `Device` or what else `device_scope` takes; None for the
            best live device.
        model: The file, or the bytes, that the session will open, or an `OnnxModel` of them.
            TensorRT, CoreML and OpenVINO then keep what they compile in a folder of its own in
            devicecore's cache; without it nothing is kept, since engines of several models in one
            folder give wrong results.
        strict: Raise where the device does not work or cannot be reached this way.
        runtime: Whose devices; None for those of this process.

    Returns:
        The device's own provider with its options, then the CPU's; between TensorRT's and the CPU's
        CUDA's on the same GPU. Only the CPU's where the device does not work, or works only through
        a plug-in, which ``providers=`` does not reach: the ledger then has an entry.

    Raises:
        DeviceCoreError: With *strict*, the device does not work, or only through a plug-in.
        InvalidDeviceNameError: *device* is not a device name.
        ModelError: *model* cannot be read, where it has to be.
        TypeError: *model* is none.
    """
    opened = None if model is None else _source_of(model)
    source = runtime or default_runtime()
    wanted = AUTO if device is None else device
    if not isinstance(wanted, Device) and str(wanted).casefold() != AUTO:
        source.parsed(wanted)  # a name that is none is an error, strict or not
    try:
        found = resolve(wanted, framework=_ONNX, runtime=source).device
        spec = found.session
        if spec is None:
            raise NotLiveError(found.name, "absent", "ONNX Runtime has no provider for it")
        if spec.is_plugin:
            raise NotLiveError(
                found.name,
                "absent",
                f"{spec.provider} is a plug-in, which providers= does not reach",
                "use devicecore.onnx.session_options(device), or devicecore.onnx.OnnxModel",
            )
    except DeviceCoreError as error:
        if strict or isinstance(error, ConfigurationError):
            raise
        default_ledger().record("get_providers", str(wanted), CPU_PROVIDER, str(error))
        return [CPU_PROVIDER]
    if spec.provider == CPU_PROVIDER:
        return [CPU_PROVIDER]
    engines = "" if opened is None else _engine_folder(found, opened, strict=strict)
    preferences = Preferences("f32", engines, thread_limit(None))
    if reason := lost_precision(spec, preferences, {}):
        default_ledger().record("get_providers", "float32", "half precision", reason)
    # What a build with TensorRT has besides is seen in its files, without importing it.
    has = [name for name in (CUDA_PROVIDER,) if provider_library(name)]
    chosen = [
        (spec.provider, provider_options(spec, preferences, {})),
        *in_between(spec, preferences, has),
    ]
    return [*((name, options) if options else name for name, options in chosen), CPU_PROVIDER]


def _source_of(model: bytes | str | Path | OnnxModel) -> bytes | Path:
    from devicecore.onnx.model import model_source  # late: it imports NumPy

    return model_source(model)


def _engine_folder(device: Device, model: bytes | Path, *, strict: bool) -> str:
    """Return where *device* keeps engines of *model*, an empty text where that cannot be."""
    assert device.session is not None
    try:
        return engine_folder(
            model, device.session, f"{device.device_type} {device.attributes.description}"
        )
    except EngineCacheError as error:
        if strict:
            raise
        default_ledger().record("get_providers", "the engine cache", "no cache", str(error))
        return ""


def _accelerator(backend: str, source: Runtime) -> Device | None:
    """Return the best device for *backend* that is no CPU, or None."""
    asked = _checked(backend)
    for device_type in automatic_types(source):
        try:
            source.fill(device_type, asked)
        except ConfigurationError:
            raise
        except DeviceCoreError:
            continue
        for device in source.manager.devices_by_type(device_type):
            if device.device_class != "CPU" and asked in device.frameworks and not device.gone:
                return device
    return None


def _word(device: Device, backend: str) -> str:
    if backend == _TORCH and device.torch_device is not None:
        kind, _, index = device.torch_device.partition(":")
    else:
        kind, index = device.device_type.lower(), str(device.parsed_name.index)
    return kind if index in ("", "0") else f"{kind}:{index}"


def _checked(backend: str) -> str:
    return checked_framework(backend, "backend")
