"""How each provider wants to be told what we mean: the same wish has other words everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.ort.spec import SessionSpec

Precision = Literal["f32", "default"]
"""``"f32"`` computes in float32 throughout; ``"default"`` leaves it to the provider."""

PRECISIONS: tuple[Precision, ...] = ("f32", "default")


def provider_options(
    spec: SessionSpec, precision: Precision, metadata: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of *spec*, with *precision* added where they leave it open.

    Args:
        spec: How the session is opened.
        precision: What is asked for.
        metadata: What the provider says of its device; empty for a provider without EpDevices.
    """
    options = dict(spec.options)
    if spec.provider == "CUDAExecutionProvider":
        # An exhaustive search, its default, runs anew for each shape: seconds for a text of its own
        # width, where the heuristic finds the same kernels at once.
        options.setdefault("cudnn_conv_algo_search", "HEURISTIC")
    if precision == "default":
        return options
    if spec.provider == "CUDAExecutionProvider":
        options.setdefault("use_tf32", "0")
    elif spec.provider == "OpenVINOExecutionProvider" and spec.is_plugin:
        # The plug-in ignores every other option, and its default is bf16 where the CPU has it.
        config = json.loads(options.get("load_config") or "{}")
        own = config.setdefault(metadata.get("ov_device", "CPU"), {})
        own.setdefault("INFERENCE_PRECISION_HINT", "f32")
        options["load_config"] = json.dumps(config)
    elif spec.provider == "OpenVINOExecutionProvider":
        options.setdefault("precision", "FP32")
    return options
