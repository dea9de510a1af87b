"""An open session: what it runs on which provider is counted, and one that idles is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceCoreError, NotLiveError
from devicecore.ort.builds import without_hardware
from devicecore.ort.error_translation import running_error
from devicecore.ort.libraries import install_hint, missing_libraries
from devicecore.ort.node_placement import can_record, profiled_nodes, recorded_nodes
from devicecore.ort.package import ort_package, provider_library
from devicecore.ort.providers import provider_named
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devicecore.liveness import State
    from devicecore.ort.spec import SessionSpec

_QUEUED_KEY = "disable_synchronize_execution_providers"
_FOLDER_FIX = "let TMPDIR name a folder that can be written, with room in it"
_SILENT = 4  # only fatal messages; a failed run raises, so its text is not lost


class OpenedSession:
    """A session, and what it really does.

    Attributes:
        session: ONNX Runtime's own ``InferenceSession``.
        spec: How it was opened.
        log: What ONNX Runtime said meanwhile.
        metadata: The texts that the model carries.
        run_options: ONNX Runtime's options of a run: it prints nothing.
        queued_run_options: The same for a run that returns once the provider's work is queued.
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
        nodes: Mapping[str, int] | None = None,
        severity: int | None = None,
    ) -> None:
        self.session = session
        self.spec = spec
        self.log: tuple[str, ...] = tuple(log)
        self.metadata: Mapping[str, str] = dict(session.get_modelmeta().custom_metadata_map)
        self._model = model
        self._min_nodes = min_nodes or 0.0
        self._output_names = [output.name for output in session.get_outputs()]
        self.run_options: Any = _run_options(ort, severity)
        self.queued_run_options: Any = _run_options(ort, severity)
        self.queued_run_options.add_run_config_entry(_QUEUED_KEY, "1")
        self._profile_lock = threading.Lock()
        self._nodes: Mapping[str, int] | None = None
        if nodes is not None:
            self._settle(nodes)
        elif can_record(ort):
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
    def left_nodes(self) -> Mapping[str, int]:
        """How many nodes other providers run, by their names."""
        return {
            name: count
            for name, count in self.nodes.items()
            if count and name != self.spec.provider
        }

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
            NotLiveError: The provider took too few, or nobody can tell.
        """
        if self._nodes is None:
            with self._profile_lock:
                if self._nodes is None:
                    self._settle(_profiled(self.session, self.spec.provider))

    def demand(self, min_nodes: float | None) -> None:
        """Refuse this session if the provider takes less than that share of the nodes.

        Raises:
            NotLiveError: It does, as far as is known by now.
        """
        self._min_nodes = min_nodes or 0.0
        if self._nodes is not None:
            self._settle(self._nodes)

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


def _run_options(ort: Any, severity: int | None) -> Any:
    options = ort.RunOptions()
    options.log_severity_level = _SILENT if severity is None else severity
    return options


def _profiled(session: Any, provider: str) -> Mapping[str, int]:
    nodes = profiled_nodes(session)
    if nodes is None and provider != CPU_PROVIDER:  # which has all that no other takes
        reason = "an ONNX Runtime before 1.24 tells only in a file which nodes it takes"
        raise NotLiveError(provider, "broken", f"{reason}, and no file can be written", _FOLDER_FIX)
    return nodes or {}


def _why_idle(spec: SessionSpec, total: int, log: Sequence[str]) -> tuple[str, str]:
    """Return why a provider took no node, and the fix."""
    if cause := missing_cause(spec):
        return cause[1:]
    reason = f"it takes none of the model's {total} nodes"
    said = " | ".join(log)
    return f"{reason} ({said})" if said else reason, "choose another device for this model"


def missing_cause(spec: SessionSpec) -> tuple[State, str, str] | None:
    """Return state, reason and fix where the provider's library lacks others; None if it is not so.

    Without the hardware that is what is said, since no library would help.
    """
    library = Path(spec.library) if spec.library else provider_library(spec.provider)
    missing = missing_libraries(library) if library else ()
    if library is None or not missing:
        return None
    if absent := without_hardware(provider_named(spec.provider)):
        return "absent", absent, ""
    package = ort_package()
    reason = f"{library.name} cannot be loaded without {', '.join(missing)}"
    return "broken", reason, install_hint(missing, package.cuda_version if package else "")
