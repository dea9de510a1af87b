"""Options in the words of another provider or version, and devices that are not the one meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.doctor.case import Case, Session

_NAME = "wrong-ep-device-or-option-dialect"
_OPENVINO = "OpenVINOExecutionProvider"
# How the options of one provider begin; to every other one they mean nothing.
_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "TensorrtExecutionProvider": ("trt_",),
    "NvTensorRTRTXExecutionProvider": ("nv_",),
    "CUDAExecutionProvider": ("cudnn_",),
    "MIGraphXExecutionProvider": ("migraphx_",),
}
_OPENVINO_DEVICE = re.compile(
    r"(CPU|GPU(\.\d+)?|NPU|(AUTO|HETERO|MULTI):[\w.,]+)(_FP16|_FP32)?", re.IGNORECASE
)
# What the build with OpenVINO in it is told, and the plug-in ignores without an error.
_IN_TREE_ONLY = ("device_type", "precision", "cache_dir", "num_of_threads", "num_streams")
_REFUSED = re.compile(
    r"(invalid|unknown) .*\boption|device \S+ is not available|invalid device", re.IGNORECASE
)
_DEVICES = (
    "devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == {provider!r}]; "
    "options.add_provider_for_devices(devices[:1], {{}})"
)


def find(case: Case) -> Iterator[Finding]:
    """Yield options that are ignored, devices that are not there, and a GPU left aside."""
    for session in case.sessions:
        yield from _foreign_options(session)
        yield from _asked_by_name(session)
        if session.provider == _OPENVINO:
            yield from _openvino(session)
        yield from _refused(session)
        yield from _gpu_number(case, session)
    yield from _gpu_left_aside(case)


def _foreign_options(session: Session) -> Iterator[Finding]:
    for owner, prefixes in _PREFIXES.items():
        foreign = [key for key in session.options if key.startswith(prefixes)]
        if foreign and owner != session.provider:
            yield Finding(
                _NAME,
                f"{session.provider} is given options of {owner}",
                ", ".join(foreign),
                f'providers=[("{owner}", {{...}})], or leave them out',
            )


def _refused(session: Session) -> Iterator[Finding]:
    trial = session.trial
    said = next(filter(_REFUSED.search, (trial.error, *trial.log)), "") if trial else ""
    if said:
        given = ", ".join(f"{key}={value}" for key, value in session.options.items())
        yield Finding(
            _NAME,
            f"{session.provider} does not take what it is given, and the session gets the CPU",
            f"given {given or 'nothing'}: {said}",
            "leave the option out, or give a device that `devicecore devices` lists",
        )


def _asked_by_name(session: Session) -> Iterator[Finding]:
    trial = session.trial
    # OpenVINO's name is known to every build, which then looks for it inside itself only.
    ignored = session.provider == _OPENVINO or (trial and trial.devices and not trial.listed)
    if session.is_plugin and ignored:
        yield Finding(
            _NAME,
            f"the plug-in {session.provider} is asked for by its name, which onnxruntime ignores",
            "only a build of onnxruntime with it inside is found by that name; the session gets "
            "the CPU without a warning",
            _DEVICES.format(provider=session.provider),
        )


def _openvino(session: Session) -> Iterator[Finding]:
    if session.is_plugin:
        if ignored := [key for key in _IN_TREE_ONLY if key in session.options]:
            yield Finding(
                _NAME,
                "OpenVINO's plug-in ignores options of the build with OpenVINO in it",
                ", ".join(f"{key} is {session.options[key]}" for key in ignored),
                '{"load_config": \'{"CPU": {"CACHE_DIR": "/a/folder"}}\'} holds them all; the '
                "EpDevice says which device",
            )
        return
    device = session.options.get("device_type", "CPU")
    if not _OPENVINO_DEVICE.fullmatch(device):
        yield Finding(
            _NAME,
            f"OpenVINO has no device {device!r}, and says so nowhere",
            f"device_type is {device}; it can be CPU, GPU, GPU.1, NPU or AUTO:GPU,CPU",
            '{"device_type": "CPU"}',
        )


def _gpu_number(case: Case, session: Session) -> Iterator[Finding]:
    number = session.options.get("device_id", "0")
    gpus = {
        gpu.index: gpu
        for candidate in case.candidates
        if candidate.registration.device_type in {"CUDA", "ROCM"}
        for gpu in candidate.liveness.devices
    }
    if gpus and not (number.isdecimal() and int(number) in gpus):
        seen = ", ".join(f"{index}: {gpu.description}" for index, gpu in gpus.items())
        yield Finding(
            _NAME,
            f"{session.provider} is asked for GPU {number}, which this process does not see",
            f"device_id is {number}; the GPUs are {seen}, in the order of the runtime, which is "
            "not that of nvidia-smi",
            f'{{"device_id": "{min(gpus)}"}}',
        )


def _gpu_left_aside(case: Case) -> Iterator[Finding]:
    """Yield that OpenVINO computes on the CPU although there is a GPU of Intel."""
    served = {
        gpu.device_class
        for candidate in case.candidates
        if candidate.registration.device_type == "OPENVINO" and candidate.liveness.is_live
        for gpu in candidate.liveness.devices
    }
    gpus = [
        candidate
        for candidate in case.candidates
        if candidate.registration.device_type == "XPU" and candidate.liveness.state != "absent"
    ]
    if served == {"CPU"} and gpus:
        reason = gpus[0].liveness.reason or gpus[0].liveness.state
        yield Finding(
            _NAME,
            "OpenVINO runs on the CPU only, and this machine has a GPU of Intel",
            f"OpenVINO offers the CPU; XPU: {reason}",
            "apt install intel-opencl-icd",
        )
