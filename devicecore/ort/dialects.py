"""How each provider wants to be told what we mean: the same wish has other words everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.ort.spec import SessionSpec

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
_CUDA = "CUDAExecutionProvider"


@frozen
class EngineOptions:
    """How a provider is told where to keep its engines.

    Attributes:
        folders: The options that take the folder; the first one is the engine's.
        switch: The option that has to be "1" besides; empty if there is none.
        is_slow: Whether a build takes minutes.
        is_sealed: Whether a session leaves the files as they are once it is open.
    """

    folders: tuple[str, ...]
    switch: str = ""
    is_slow: bool = False
    is_sealed: bool = True

    def for_folder(self, folder: str) -> dict[str, str]:
        """Return the options that make the provider keep its engines in *folder*."""
        switched = {self.switch: "1"} if self.switch else {}
        return switched | dict.fromkeys(self.folders, folder)


# The plug-in of OpenVINO takes the folder inside its ``load_config``, see `provider_options`.
ENGINE_OPTIONS: dict[str, EngineOptions] = {
    "TensorrtExecutionProvider": EngineOptions(
        ("trt_engine_cache_path", "trt_timing_cache_path"),
        "trt_engine_cache_enable",
        is_slow=True,
        is_sealed=False,
    ),
    "NvTensorRTRTXExecutionProvider": EngineOptions(
        ("nv_runtime_cache_path",), is_slow=True, is_sealed=False
    ),
    "CoreMLExecutionProvider": EngineOptions(("ModelCacheDirectory",), is_slow=True),
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
    if spec.provider == _CUDA:
        # An exhaustive search, its default, runs anew for each shape: seconds for a text of its own
        # width, where the heuristic finds the same kernels at once.
        options.setdefault("cudnn_conv_algo_search", "HEURISTIC")
    if wanted.precision == "f32" and spec.provider in _IN_FLOAT32:
        key, value = _IN_FLOAT32[spec.provider]
        options.setdefault(key, value)
    return options


_IN_FLOAT32 = {_CUDA: ("use_tf32", "0"), OPENVINO: ("precision", "FP32")}


def _openvino_plugin(options: dict[str, str], wanted: Preferences, device: str) -> dict[str, str]:
    """Return *options* in the words of OpenVINO's plug-in: it ignores all but ``load_config``."""
    config = json.loads(options.get("load_config") or "{}")
    own = config.setdefault(device, {})
    if wanted.precision == "f32":  # its default is bf16 where the CPU has it
        own.setdefault("INFERENCE_PRECISION_HINT", "f32")
    if wanted.engines:
        own.setdefault("CACHE_DIR", wanted.engines)
    if wanted.threads and device == "CPU":
        own.setdefault("INFERENCE_NUM_THREADS", str(wanted.threads))
    return options | {"load_config": json.dumps(config)} if own else options
