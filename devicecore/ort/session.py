"""Sessions: opened on one provider, never quietly on another, and measured afterwards."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore import config
from devicecore.errors import DeviceCoreError, ModelError, NotLiveError
from devicecore.optional import require
from devicecore.ort.assignment import RECORD_KEY, can_record, profiled_nodes, recorded_nodes
from devicecore.ort.dialects import Precision, provider_options
from devicecore.ort.known_options import check_provider_options, check_session_options
from devicecore.ort.libraries import install_hint, missing_libraries, preload
from devicecore.ort.log_capture import captured_log
from devicecore.ort.model_file import checked_model, described
from devicecore.ort.package import (
    OrtPackage,
    how_to_install,
    ort_package,
    provider_library,
    why_missing,
)
from devicecore.ort.plugins import native_device, register
from devicecore.ort.providers import provider_named
from devicecore.ort.spec import CPU_PROVIDER
from devicecore.ort.translation import opening_error, running_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devicecore.ort.spec import SessionSpec

_SILENT = 4  # only fatal messages; a failed run raises, so its text is not lost


def open_session(
    model: bytes | str | Path,
    spec: SessionSpec,
    *,
    precision: Precision = "f32",
    min_nodes: float | None = None,
    threads: int | None = None,
    provider_options: Mapping[str, str] | None = None,
    session_options: Mapping[str, str] | None = None,
) -> OpenedSession:
    """Open *model* on the provider that *spec* names, or raise: there is no fallback.

    Nodes that the provider does not take run on the CPU, as ONNX Runtime places them; how many it
    took is known afterwards, and none at all is an error. Nothing is printed.

    Args:
        model: The file, or its bytes.
        spec: Provider, options and device.
        precision: What the provider computes in; see `devicecore.ort.dialects`.
        min_nodes: The share of the nodes, from 0 to 1, that the provider must take.
        threads: Threads of the session; None for as many CPUs as this process may really use.
        provider_options: Further options of the provider; they go before those of *spec*.
        session_options: Further configuration entries of the session, such as
            ``{"session.disable_prepacking": "1"}``.

    Raises:
        ModelError: The model is at fault, or an option that would be ignored.
        NotLiveError: The provider does not work here, or takes too few of the nodes.
        OutOfMemoryError: The device has too little memory for the model.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    source = checked_model(model)
    ort = require("onnxruntime", extra="onnx")
    name = described(model)
    check_provider_options(name, spec, provider_options or {})
    check_session_options(name, session_options or {})
    if provider_options:
        spec = evolve(spec, options={**spec.options, **provider_options})
    with captured_log() as log:
        try:
            options = new_options(ort, threads, session_options)
            _record_nodes(ort, options)
            session = _create(ort, source, options, spec, precision)
        except (ModelError, NotLiveError):
            raise
        except Exception as error:  # its errors share no other base
            raise _explained(opening_error(error, name, spec, log), spec) from error
    return OpenedSession(ort, session, spec, name, log=log, min_nodes=min_nodes)


class OpenedSession:
    """A session, and what it really does.

    Attributes:
        session: ONNX Runtime's own ``InferenceSession``.
        spec: How it was opened.
        log: What ONNX Runtime said meanwhile.
        metadata: The texts that the model carries.
        run_options: ONNX Runtime's options of a run: it prints nothing.
    """

    def __init__(
        self,
        ort: Any,
        session: Any,
        spec: SessionSpec,
        model: str,
        *,
        log: Sequence[str] = (),
        min_nodes: float | None = None,
    ) -> None:
        self.session = session
        self.spec = spec
        self.log: tuple[str, ...] = tuple(log)
        self.metadata: Mapping[str, str] = dict(session.get_modelmeta().custom_metadata_map)
        self._model = model
        self._min_nodes = min_nodes or 0.0
        self._output_names = [output.name for output in session.get_outputs()]
        self.run_options: Any = ort.RunOptions()
        self.run_options.log_severity_level = _SILENT
        self._profile_lock = threading.Lock()
        self._nodes: Mapping[str, int] | None = None
        if can_record(ort):
            self._settle(recorded_nodes(session))

    @property
    def nodes(self) -> Mapping[str, int]:
        """The model's nodes of each provider; empty before the first run on ONNX Runtime < 1.24."""
        return self._nodes or {}

    @property
    def live_nodes(self) -> int:
        """How many nodes the provider that was asked for runs."""
        return self.nodes.get(self.spec.provider, 0)

    @property
    def total_nodes(self) -> int:
        """How many nodes there are in all, after ONNX Runtime optimised the model."""
        return sum(self.nodes.values())

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model on *feeds*, an array for each input, and return an array for each output.

        Raises:
            ModelError: The model cannot take these values.
            NotLiveError: The provider failed; on ONNX Runtime < 1.24 also if it took too few nodes.
            OutOfMemoryError: The device has too little memory.
        """
        try:
            values = self.session.run(self._output_names, feeds, self.run_options)
        except Exception as error:  # its errors share no other base
            raise self.run_error(error) from error
        self.count_nodes()
        return dict(zip(self._output_names, values, strict=True))

    def run_error(self, error: Exception) -> DeviceCoreError:
        """Return what to raise where ONNX Runtime raised *error* in a run of this session."""
        return running_error(error, self._model, self.spec)

    def count_nodes(self) -> None:
        """Count the nodes of each provider, if that had to wait for the first run.

        Raises:
            NotLiveError: The provider took too few.
        """
        if self._nodes is None:
            with self._profile_lock:
                if self._nodes is None:
                    self._settle(profiled_nodes(self.session))

    def _settle(self, nodes: Mapping[str, int]) -> None:
        """Take note of *nodes*, and refuse a session that does not do what it was opened for."""
        self._nodes = nodes
        if self.total_nodes == 0:  # nothing to compute, so nothing to refuse
            return
        if self.live_nodes == 0:
            reason, fix = _why_idle(self.spec, self.total_nodes, self.log)
            raise NotLiveError(self.spec.provider, "broken", reason, fix)
        if self.live_nodes < self._min_nodes * self.total_nodes:
            reason = (
                f"it takes {self.live_nodes} of the {self.total_nodes} nodes of {self._model}, "
                f"fewer than the share of {self._min_nodes:g} that was asked for"
            )
            raise NotLiveError(self.spec.provider, "broken", reason, "lower min_nodes")


def new_options(
    ort: Any, threads: int | None = None, entries: Mapping[str, str] | None = None
) -> Any:
    """Return ONNX Runtime's ``SessionOptions`` with as many threads as may really run at once."""
    options = ort.SessionOptions()
    usable = config.effective_cpu_count()
    options.intra_op_num_threads = threads or usable
    if usable < (os.cpu_count() or 1) or (threads or 0) > usable:
        # Where others share the CPUs, threads that wait in a loop take the time of those that work.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for key, value in (entries or {}).items():
        options.add_session_config_entry(key, value)
    return options


def _record_nodes(ort: Any, options: Any) -> None:
    if can_record(ort):
        options.add_session_config_entry(RECORD_KEY, "1")
    else:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(tempfile.gettempdir()) / f"devicecore_{os.getpid()}")


def _create(
    ort: Any, source: bytes | str, options: Any, spec: SessionSpec, precision: Precision
) -> Any:
    if spec.is_plugin:
        add_provider(ort, options, spec, precision)
        return ort.InferenceSession(source, options, enable_fallback=0)
    _prepare(ort, spec.provider)
    providers = [(spec.provider, provider_options(spec, precision, {}))]
    return ort.InferenceSession(source, options, providers=providers, enable_fallback=0)


def add_provider(ort: Any, options: Any, spec: SessionSpec, precision: Precision) -> None:
    """Put the provider of *spec* first in *options*, ONNX Runtime's ``SessionOptions``.

    Raises:
        NotLiveError: ONNX Runtime does not have it, or it has no such device.
    """
    if spec.is_plugin:
        if spec.library is not None:
            register(spec.library)
        device = native_device(spec.provider, spec.ep_device_index or 0)
        chosen = provider_options(spec, precision, dict(device.ep_metadata))
        options.add_provider_for_devices([device], chosen)
        return
    _prepare(ort, spec.provider)
    if spec.provider != CPU_PROVIDER:  # which is always there, as the last one
        options.add_provider(spec.provider, provider_options(spec, precision, {}))


def _prepare(ort: Any, provider: str) -> None:
    """Load what the library of *provider* needs, or raise if there is no such provider."""
    _refuse_unknown(ort, provider)
    if library := provider_library(provider):
        preload(library)


def _refuse_unknown(ort: Any, provider: str) -> None:
    """Raise where ONNX Runtime would take the CPU with a warning at most."""
    if provider not in ort.get_available_providers():
        known, package = provider_named(provider), ort_package() or OrtPackage(Path())
        reason, fix = why_missing(known, package), how_to_install(known, package)
        raise NotLiveError(provider, "missing", reason, fix)


def _explained(error: DeviceCoreError, spec: SessionSpec) -> DeviceCoreError:
    """Return *error*, or the one that names what the provider's library misses, if it does."""
    cause = _missing(spec) if isinstance(error, NotLiveError) else None
    return NotLiveError(spec.provider, "broken", *cause) if cause else error


def _why_idle(spec: SessionSpec, total: int, log: Sequence[str]) -> tuple[str, str]:
    """Return why a provider took no node, and the fix."""
    if cause := _missing(spec):
        return cause
    reason = f"it takes none of the model's {total} nodes"
    said = " | ".join(log)
    return f"{reason} ({said})" if said else reason, "choose another device for this model"


def _missing(spec: SessionSpec) -> tuple[str, str] | None:
    """Return reason and fix where the provider's library cannot be loaded for want of others."""
    library = Path(spec.library) if spec.library else provider_library(spec.provider)
    missing = missing_libraries(library) if library else ()
    if library is None or not missing:
        return None
    package = ort_package()
    reason = f"{library.name} cannot be loaded without {', '.join(missing)}"
    return reason, install_hint(missing, package.cuda_version if package else "")
