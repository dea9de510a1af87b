"""Providers that compute in less than float32 unless they are told otherwise."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.ort import ort_package, plugin_library, provider_named
from devicecore.ort.package import is_built_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.doctor.case import Case, Session

_NAME = "reduced-precision"
_OPENVINO, _CUDA = "OpenVINOExecutionProvider", "CUDAExecutionProvider"
_HINT = "INFERENCE_PRECISION_HINT"
_FULL = {"F32", "FP32"}
_HAS_TF32 = 8  # the first compute capability with it
_BF16_FLAGS = {"avx512_bf16", "amx_bf16"}
_OPENVINO_FIX = f'{{"load_config": \'{{"CPU": {{"{_HINT}": "f32"}}}}\'}}'
_CUDA_FIX = 'providers=[("CUDAExecutionProvider", {"use_tf32": "0"})]'


def find(case: Case) -> Iterator[Finding]:
    """Yield the sessions that compute in less, and what makes this machine do so by itself."""
    for session in case.sessions:
        yield from _of_session(session)
    asked = {session.provider for session in case.sessions}
    plugin = provider_named(_OPENVINO).plugin
    may_run = any(
        candidate.registration.device_type == "OPENVINO"
        and candidate.liveness.state in {"live", "untried"}
        for candidate in case.candidates
    )
    flags = cpu_flags() & _BF16_FLAGS if may_run else None
    if _OPENVINO not in asked and plugin and plugin_library(plugin) and flags:
        yield Finding(
            _NAME,
            "OpenVINO's plug-in computes in bf16 on this CPU unless a session says otherwise",
            f"the CPU has {', '.join(sorted(flags))}; {plugin.distribution} is installed",
            f"{_OPENVINO_FIX}; OnnxModel does so by itself",
            is_advice=True,
        )
    package = ort_package()
    if _CUDA not in asked and package and is_built_in(provider_named(_CUDA), package):
        yield from _of_gpus(case)


def _of_gpus(case: Case) -> Iterator[Finding]:
    for candidate in case.candidates:
        for gpu in candidate.liveness.devices if candidate.chosen else ():
            capability = gpu.details.get("compute_capability", "0").partition(".")[0]
            if candidate.registration.device_type == "CUDA" and int(capability) >= _HAS_TF32:
                yield Finding(
                    _NAME,
                    f"{_CUDA} rounds float32 to TF32 unless a session says otherwise",
                    f"{gpu.description} has TF32 (compute capability "
                    f"{gpu.details['compute_capability']})",
                    f"{_CUDA_FIX}; OnnxModel does so by itself",
                    is_advice=True,
                )
                return


def _of_session(session: Session) -> Iterator[Finding]:
    provider, options = session.provider, session.options
    if provider == _OPENVINO:
        key, value, fix = _openvino(session)
    elif provider == _CUDA:
        key, fix = "use_tf32", _CUDA_FIX
        value = "" if options.get(key, "1") == "0" else options.get(key, "not set, which means 1")
    else:
        lower = [key for key in options if key.endswith(("_fp16_enable", "_bf16_enable"))]
        key = next((key for key in lower if options[key].lower() in {"1", "true"}), "")
        value, fix = options.get(key, ""), f"leave {key} out"
    if value:
        yield Finding(
            _NAME,
            f"{provider} may compute {session.title} in less than float32",
            f"{key} is {value}",
            fix,
        )


def _openvino(session: Session) -> tuple[str, str, str]:
    """Return option, value and fix; the value is empty where it is float32."""
    if not session.is_plugin:  # its default is float32
        value = session.options.get("precision", "FP32").upper()
        return "precision", "" if value in _FULL else value, '{"precision": "FP32"}'
    hints = [each.get(_HINT, "") for each in _config(session.options).values()]
    value = ", ".join(hints) or "not set, which means bf16 where the CPU has it"
    return (
        _HINT,
        "" if hints and {hint.upper() for hint in hints} <= _FULL else value,
        _OPENVINO_FIX,
    )


def _config(options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    with suppress(ValueError):
        config = json.loads(options.get("load_config", "{}"))
        if isinstance(config, dict):
            return {key: part for key, part in config.items() if isinstance(part, dict)}
    return {}


def cpu_flags() -> set[str]:
    """Return what the CPU can do, in Linux's words; empty on other systems."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()
