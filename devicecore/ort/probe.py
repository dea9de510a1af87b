"""Probes of providers: one reads files, the other opens a session and computes something."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.errors import (
    BrokenPackageError,
    DeviceCoreError,
    MissingDependencyError,
    NotLiveError,
)
from devicecore.liveness import Liveness
from devicecore.liveness.probe_result import failure
from devicecore.optional import require
from devicecore.optional.faults import package_fault
from devicecore.ort.builds import lack_of, without_hardware
from devicecore.ort.libraries import install_hint, libraries_named_in, missing_libraries
from devicecore.ort.log_capture import captured_log
from devicecore.ort.package import (
    is_built_in,
    ort_package,
    plugin_library,
    provided_by_import,
    provider_library,
)
from devicecore.ort.providers import provider_named
from devicecore.ort.session_opening import open_session
from devicecore.ort.spec import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import (
    COLUMNS,
    INPUT,
    INPUT_VALUES,
    OUTPUT,
    ROWS,
    expected_values,
    tiny_model,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.liveness import State
    from devicecore.ort.providers import Provider

# The states that opening a session can tell from being broken.
_STATES: Mapping[str, State] = {
    "absent": "absent",
    "missing": "missing",
    "version_mismatch": "version_mismatch",
}
_NO_CPU = "session.disable_cpu_ep_fallback"


def provider_metadata(provider: str, *, plugin: bool | None = None) -> Liveness:
    """Return what the files on this machine say of *provider*, importing nothing.

    The best answer is ``untried``: its libraries are there and can be loaded.

    Args:
        provider: ONNX Runtime's name of it.
        plugin: Whether the plug-in is meant or what is built into ONNX Runtime; None for either.
    """
    known = provider_named(provider)
    if known.platform and known.platform != sys.platform:
        return Liveness("absent", reason=f"{provider} exists on {known.platform} only")
    if hidden := _hidden():
        return hidden
    package = ort_package()
    if package is None:
        state, reason, fix = lack_of(known, None, plugin=plugin)
        return Liveness(state, reason=reason, fix=fix)
    library = None
    if known.plugin and plugin is not False:
        library = plugin_library(known.plugin)
    if plugin is not True:
        library = library or provider_library(provider)
        if library is None and not known.library and is_built_in(known, package):
            return Liveness("untried", reason=f"part of {package.name}", detail=str(package.folder))
    if library is not None:
        return library_metadata(library, known)
    state, reason, fix = lack_of(known, package, plugin=plugin)
    return Liveness(state, reason=reason, fix=fix)


def _hidden() -> Liveness | None:
    """Return the answer where a file of the program goes before ONNX Runtime, or before NumPy."""
    for fault in map(package_fault, ("onnxruntime", "numpy")):
        if fault is not None and fault.state == "shadowed":
            return Liveness(fault.state, reason=fault.reason, fix=fault.fix)
    return None


def library_metadata(library: Path, known: Provider) -> Liveness:
    """Return whether everything that the *library* of a provider needs can be loaded."""
    missing = missing_libraries(library, provided_by_import(library))
    if not missing:
        return Liveness("untried", reason=f"{library.name} is installed", detail=str(library))
    if absent := without_hardware(known):  # no library would help
        return Liveness("absent", reason=absent)
    package = ort_package()
    return Liveness(
        "broken",
        reason=f"{library.name} cannot be loaded without {', '.join(missing)}",
        detail=f"{package.label if package else 'no onnxruntime'}; {library}",
        fix=install_hint(missing, package.cuda_version if package else ""),
    )


def probe_provider(spec: SessionSpec) -> Liveness:
    """Open a tiny model as *spec* says, with the CPU forbidden, run it and compare the result.

    Imports ONNX Runtime and loads the provider, so whatever those do to a process happens here.
    """
    start = time.perf_counter()
    found = _files_of(spec)
    if found.state == "untried":
        found = _tried(spec)
    return evolve(found, seconds=time.perf_counter() - start)


def _files_of(spec: SessionSpec) -> Liveness:
    if spec.library is not None and ort_package() is not None:
        return library_metadata(Path(spec.library), provider_named(spec.provider))
    return provider_metadata(spec.provider, plugin=None if spec.is_plugin else False)


def _tried(spec: SessionSpec) -> Liveness:
    entries = {} if spec.provider == CPU_PROVIDER else {_NO_CPU: "1"}
    log: list[str] = []
    try:
        numpy = require("numpy", extra="onnx")
        with captured_log(native=True) as log:
            opened = open_session(tiny_model(), spec, threads=1, session_options=entries)
            given = numpy.array(INPUT_VALUES, dtype=numpy.float32).reshape(ROWS, COLUMNS)
            result = opened.run({INPUT: given})[OUTPUT]
    except NotLiveError as error:
        state: State = _STATES.get(error.state, "broken")
        return Liveness(state, "opened", *_explained(error, log))
    except MissingDependencyError as error:
        return Liveness("missing", "metadata", str(error))
    except BrokenPackageError as error:
        return failure(error)
    except DeviceCoreError as error:
        return Liveness("broken", "opened", str(error), "\n".join(log))
    answer = tuple(float(value) for value in result.ravel())
    if answer != expected_values():
        reason = "it computes wrong results"
        detail = f"the probe's model gave {answer}, right is {expected_values()}"
        return Liveness("broken", "ran", reason, detail)
    placed = f"{opened.live_nodes} of {opened.total_nodes} nodes of the probe's model"
    return Liveness("live", "ran", detail=placed)


def _explained(error: NotLiveError, log: list[str]) -> tuple[str, str, str]:
    """Return reason, detail and fix; a driver's own words say more than the error after them."""
    missing = libraries_named_in("\n".join([error.reason, *log]))
    package = ort_package()
    fix = error.fix or install_hint(missing, package.cuda_version if package else "")
    absent = f"{', '.join(missing)} cannot be loaded: " if missing else ""
    return absent + error.reason, "\n".join(log), fix
