"""How each provider wants to be told what we mean: the same wish has other words everywhere."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from devicecore.ort.spec import SessionSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Precision = Literal["f32", "default"]
"""``"f32"`` computes in float32 throughout; ``"default"`` leaves it to the provider."""

PRECISIONS: tuple[Precision, ...] = ("f32", "default")


@frozen
class Preferences:
    """What we mean, in the words of no provider.

    Attributes:
        precision: What it computes in.
        engines: The folder where it keeps its engines; empty to keep none.
        threads: How many CPUs it may take where it computes on the CPU with threads of its own; 0
            for as many as it likes.
    """

    precision: Precision = "f32"
    engines: str = ""
    threads: int = 0


OPENVINO = "OpenVINOExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"
_TENSORRT_RTX = "NvTensorRTRTXExecutionProvider"
_COREML = "CoreMLExecutionProvider"


@frozen
class EngineOptions:
    """How a provider is told where to keep its engines.

    Attributes:
        folders: The options that take the folder; the first one is the engine's.
        switch: The option that has to be "1" besides; empty if there is none.
        further_switches: Those that have to be "1" for the other folders.
        is_slow: Whether a build takes minutes.
        is_sealed: Whether a session leaves the files as they are once it is open.
    """

    folders: tuple[str, ...]
    switch: str = ""
    further_switches: tuple[str, ...] = ()
    is_slow: bool = False
    is_sealed: bool = True

    def for_folder(self, folder: str) -> dict[str, str]:
        """Return the options that make the provider keep its engines in *folder*."""
        switches = filter(None, (self.switch, *self.further_switches))
        return dict.fromkeys(switches, "1") | dict.fromkeys(self.folders, folder)


# The plug-in of OpenVINO takes the folder inside its ``load_config``, see `provider_options`.
ENGINE_OPTIONS: dict[str, EngineOptions] = {
    _TENSORRT: EngineOptions(
        ("trt_engine_cache_path", "trt_timing_cache_path"),
        "trt_engine_cache_enable",
        ("trt_timing_cache_enable",),
        is_slow=True,
        is_sealed=False,
    ),
    _TENSORRT_RTX: EngineOptions(("nv_runtime_cache_path",), is_slow=True, is_sealed=False),
    _COREML: EngineOptions(("ModelCacheDirectory",), is_slow=True),
    OPENVINO: EngineOptions(("cache_dir",), is_sealed=False),
}


def builds_slowly(provider: str) -> bool:
    """Return whether *provider* may build for minutes before it computes."""
    known = ENGINE_OPTIONS.get(provider)
    return known is not None and known.is_slow


def provider_options(
    spec: SessionSpec, wanted: Preferences, metadata: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of *spec*, with what is *wanted* where they leave it open.

    Args:
        spec: How the session is opened.
        wanted: What is asked for.
        metadata: What the provider says of its device; empty for a provider without EpDevices.
    """
    options = dict(spec.options)
    if spec.provider == OPENVINO and spec.is_plugin:
        return _openvino_plugin(options, wanted, metadata.get("ov_device", "CPU"))
    if wanted.engines:
        options = ENGINE_OPTIONS[spec.provider].for_folder(wanted.engines) | options
    if wanted.threads and spec.provider == OPENVINO and options.get("device_type") == "CPU":
        options.setdefault("num_of_threads", str(wanted.threads))
    if spec.provider == CUDA_PROVIDER:
        # Its default, the exhaustive search, takes 2 to 7 times longer at each change of shape, for
        # kernels that are no faster (benchmarks/gpu/conv_search.py).
        options.setdefault("cudnn_conv_algo_search", "HEURISTIC")
    if wanted.precision == "f32" and _takes_float32(spec.provider, options.get("device_type", "")):
        options = _IN_FLOAT32.get(spec.provider, {}) | options
    return options


def lost_precision(spec: SessionSpec, wanted: Preferences, metadata: Mapping[str, str]) -> str:
    """Return why a session does not compute in float32 although that is wanted; empty if it does.

    Args:
        spec: How the session is opened.
        wanted: What is asked for.
        metadata: What the provider says of its device; empty for a provider without EpDevices.
    """
    device = metadata.get("ov_device") or spec.options.get("device_type", "")
    if wanted.precision != "f32" or spec.provider != OPENVINO or not _has_npu(device):
        return ""
    return f"OpenVINO computes in half precision on {device}: an NPU has no float32"


def _takes_float32(provider: str, device: str) -> bool:
    """Return whether OpenVINO takes the option for a device; others always take theirs.

    Its NPU refuses it, and so does a name such as ``CPU_FP32``, which says the precision already.
    """
    return provider != OPENVINO or not (_has_npu(device) or "_" in device)


def _has_npu(device: str) -> bool:
    """Return whether OpenVINO may run on an NPU under a name such as ``AUTO:NPU,CPU``."""
    return any(part.strip().startswith("NPU") for part in re.split("[:,]", device.upper()))


def in_between(
    spec: SessionSpec, wanted: Preferences, available: Collection[str]
) -> list[tuple[str, dict[str, str]]]:
    """Return providers, with their options, for what that of *spec* leaves, before the CPU's.

    What TensorRT does not take stays on its GPU.

    Args:
        spec: How the session is opened.
        wanted: What is asked for.
        available: The providers that this ONNX Runtime has.
    """
    if spec.provider not in {_TENSORRT, _TENSORRT_RTX} or CUDA_PROVIDER not in available:
        return []
    same = {key: spec.options[key] for key in _OF_THE_GPU if key in spec.options}
    if spec.ep_device_index is not None:  # of a plug-in, which is told its GPU in no option
        same.setdefault("device_id", str(spec.ep_device_index))
    plain = Preferences(wanted.precision)
    return [(CUDA_PROVIDER, provider_options(SessionSpec(CUDA_PROVIDER, same), plain, {}))]


# Which GPU, and on which stream: CUDA's options have the same names.
_OF_THE_GPU = ("device_id", "user_compute_stream")
_IN_FLOAT32 = {
    CUDA_PROVIDER: {"use_tf32": "0"},
    OPENVINO: {"precision": "FP32"},
    # Its default format has no types and runs in half precision on GPU and neural engine; an ML
    # program computes in those of the model.
    _COREML: {"ModelFormat": "MLProgram", "AllowLowPrecisionAccumulationOnGPU": "0"},
}


def _openvino_plugin(options: dict[str, str], wanted: Preferences, device: str) -> dict[str, str]:
    """Return *options* in the words of OpenVINO's plug-in: it ignores all but ``load_config``."""
    config = json.loads(options.get("load_config") or "{}")
    own = config.setdefault(device, {})
    if wanted.precision == "f32" and not _has_npu(device):  # its default may be bf16
        own.setdefault("INFERENCE_PRECISION_HINT", "f32")
    if wanted.engines:
        own.setdefault("CACHE_DIR", wanted.engines)
    if wanted.threads and device == "CPU":
        own.setdefault("INFERENCE_NUM_THREADS", str(wanted.threads))
    return options | {"load_config": json.dumps(config)} if own else options
