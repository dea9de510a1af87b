"""What devicecore says of one provider state, in a process that is in that state.

Run as ``python answer.py JOB``; the job, in JSON, names a function of this file and its arguments.
The answer is a state and what was said, in JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from devicecore.errors import DeviceCoreError, NotLiveError
from devicecore.ort import SessionSpec, ep_devices, open_session, probe_provider, register
from devicecore.ort.tiny_model import tiny_model

Answer = tuple[str, str]


def spec_of(job: dict[str, Any]) -> SessionSpec:
    """Return how sessions are opened: on a plug-in's first device, or by the provider's name."""
    options = job.get("options", {})
    if module := job.get("module"):
        library = import_module(module).get_library_path()
    elif pattern := job.get("library"):
        library = next(file for folder in sys.path for file in Path(folder).glob(pattern))
    else:
        return SessionSpec(job["provider"], options)
    return SessionSpec(job["provider"], options, 0, str(library))


def model_of(job: dict[str, Any]) -> bytes | str:
    """Return the job's model, or one of two nodes."""
    return str(job["model"]) if job.get("model") else tiny_model()


def probed(job: dict[str, Any]) -> Answer:
    """Say what the probe says."""
    found = probe_provider(spec_of(job))
    return found.state, f"{found.reason} {found.detail}"


def opened(job: dict[str, Any]) -> Answer:
    """Say what comes of opening a session."""
    try:
        session = open_session(
            model_of(job), spec_of(job), threads=1, provider_options=job.get("provider_options")
        )
    except NotLiveError as error:
        return error.state, str(error)
    except DeviceCoreError as error:
        return type(error).__name__, str(error)
    return "live", f"{session.live_nodes} of {session.total_nodes} nodes"


def diagnosed(job: dict[str, Any]) -> Answer:
    """Say what the doctor says first, of a session if a provider is named."""
    from devicecore.doctor import Case, Session, diagnose, tried

    model = Path(job["model"]) if job.get("model") else None
    asked = [Session(job["provider"], job.get("options", {}), model)] if job.get("provider") else []
    found = list(diagnose(Case(sessions=tuple(map(tried, asked)))))
    wanted = [each for each in found if each.name == job["finding"]]
    if not wanted:
        return "no finding", ", ".join(each.name for each in found)
    return wanted[0].name, f"{wanted[0].problem}; {wanted[0].evidence}"


def in_both_precisions(job: dict[str, Any]) -> Answer:
    """Run one model in float32 and then as the provider likes, with one cache folder."""
    from devicecore.ort.engine_cache import EngineCache

    numpy = import_module("numpy")
    x = numpy.random.default_rng(0).random((1, 3, 48, 320), numpy.float32)
    finite = []
    for precision in ("f32", "default"):
        session = open_session(
            model_of(job),
            spec_of(job),
            precision=precision,
            cache="engines",
        )
        (result,) = session.run({session.session.get_inputs()[0].name: x}).values()
        finite.append(bool(numpy.isfinite(result).all()))
    kept = len(list(EngineCache().folder.glob("*/entry.json")))
    return "live", f"{'no NaN' if all(finite) else 'NaN'}, {kept} engines"


def with_a_damaged_engine(job: dict[str, Any]) -> Answer:
    """Flip a bit of a kept engine between two sessions."""
    from devicecore.ort.engine_cache import EngineCache

    numpy = import_module("numpy")
    x = numpy.random.default_rng(0).random((1, 3, 48, 320), numpy.float32)
    results = []
    for _ in range(2):
        session = open_session(model_of(job), spec_of(job), cache="engines")
        (result,) = session.run({session.session.get_inputs()[0].name: x}).values()
        results.append(result)
        (blob,) = EngineCache().folder.rglob("*.blob")
        content = bytearray(blob.read_bytes())
        content[len(content) // 2] ^= 1
        blob.write_bytes(content)
    same = bool((results[0] == results[1]).all())
    return "live", "the same again" if same else "other numbers"


def unregistered_meanwhile(job: dict[str, Any]) -> Answer:
    """Let the program unregister a library that we registered, and open a session after that."""
    spec = spec_of(job)
    assert spec.library is not None
    register(spec.library)
    kept = ep_devices(spec.provider)
    import_module("onnxruntime").unregister_execution_provider_library(str(Path(spec.library)))
    assert not ep_devices(spec.provider)
    state, _ = opened(job)
    return state, "asked for anew" if ep_devices(spec.provider) == kept else "another device"


def without_hardware(job: dict[str, Any]) -> Answer | None:
    """Say that OpenVINO's plug-in, if it is asked about, takes Intel's CPUs only."""
    if job.get("module") != "onnxruntime_ep_openvino":
        return None
    register(str(spec_of(job).library))
    if ep_devices("OpenVINOExecutionProvider"):
        return None
    return "skipped", "the OpenVINO plug-in offers no device for this CPU"


def main() -> None:
    """Answer the job."""
    job = json.loads(sys.argv[1])
    answer: Answer = without_hardware(job) or globals()[job["ask"]](job)
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
