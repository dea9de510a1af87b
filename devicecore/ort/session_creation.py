"""How a session is made on one provider, never quietly on another."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore import config
from devicecore.errors import (
    DeviceCoreError,
    FallbackForbiddenError,
    ModelError,
    NotLiveError,
)
from devicecore.ledger import default_ledger
from devicecore.optional import require
from devicecore.ort.builds import lack_of
from devicecore.ort.custom_operators import further_faults, register_libraries
from devicecore.ort.error_translation import opening_error
from devicecore.ort.libraries import preload
from devicecore.ort.log_capture import captured_log
from devicecore.ort.node_placement import RECORD_KEY, can_record
from devicecore.ort.package import OrtPackage, ort_package, provider_library
from devicecore.ort.plugins import native_device, register
from devicecore.ort.provider_options import (
    Precision,
    Preferences,
    in_between,
    lost_precision,
    provider_options,
)
from devicecore.ort.providers import provider_named
from devicecore.ort.session import OpenedSession, missing_cause
from devicecore.ort.session_attributes import set_attributes, severity_of
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.ort.spec import SessionSpec

# A session says more in its runs than any option of a run keeps it from; an error raises.
_ERRORS = 3


@frozen
class Recipe:
    """What a session is made of.

    Attributes:
        model: The model's file, or its bytes.
        name: What messages call the model.
        spec: Provider, options and device.
        precision: What the provider computes in.
        min_nodes: The share of the nodes that the provider must take.
        threads: Threads of the session; None for as many CPUs as this process may really use.
        entries: Further configuration entries of the session.
        engines: The folder where the provider keeps its engine; empty to keep none.
        saves_to: Where ONNX Runtime writes the model as it has optimised it.
        nodes: The nodes of each provider, for a *model* that was written so; None for another.
        custom_operators: The libraries of its operators that ONNX Runtime lacks.
    """

    model: bytes | str
    name: str
    spec: SessionSpec
    precision: Precision = "f32"
    min_nodes: float | None = None
    threads: int | None = None
    entries: Mapping[str, str] = {}
    engines: str = ""
    saves_to: Path | None = None
    nodes: Mapping[str, int] | None = None
    custom_operators: tuple[str, ...] = ()


def create(recipe: Recipe) -> OpenedSession:
    """Make the session of *recipe*; nothing is printed unless its entries ask for it.

    Raises:
        ModelError: The model is at fault, or an option.
        NotLiveError: The provider does not work here, or takes too few of the nodes.
        OutOfMemoryError: The device has too little memory for the model.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    ort = require("onnxruntime", extra="onnx")
    spec, name = recipe.spec, recipe.name
    severity = severity_of(recipe.entries)
    with ExitStack() as stack:
        log = stack.enter_context(captured_log()) if severity is None else []
        try:
            options = new_options(ort, recipe.threads, recipe.entries)
            register_libraries(options, recipe.custom_operators, name)
            _optimise_once(ort, options, recipe)
            _record_nodes(ort, options, name)
            session = _create(ort, recipe, options)
        except (ModelError, NotLiveError, FallbackForbiddenError):
            raise
        except Exception as error:  # its errors share no other base
            more = further_faults(ort, recipe.model, recipe.custom_operators, str(error))
            raise _explained(opening_error(error, name, spec, log, more), spec) from error
    return OpenedSession(
        ort,
        session,
        spec,
        name,
        log=log,
        min_nodes=recipe.min_nodes,
        nodes=recipe.nodes,
        severity=severity,
    )


def new_options(
    ort: Any, threads: int | None = None, entries: Mapping[str, str] | None = None
) -> Any:
    """Return ONNX Runtime's ``SessionOptions`` with as many threads as may really run at once."""
    options = ort.SessionOptions()
    options.log_severity_level = _ERRORS
    usable = config.effective_cpu_count()
    options.intra_op_num_threads = threads or usable
    if _is_limited() or (threads or 0) > usable:
        # Where others share the CPUs, threads that wait in a loop take the time of those that work.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for key, value in set_attributes(options, entries or {}).items():
        options.add_session_config_entry(key, value)
    return options


def thread_limit(threads: int | None) -> int:
    """Return how many threads of its own a provider may have, 0 where nothing limits them."""
    return threads or (config.effective_cpu_count() if _is_limited() else 0)


def _is_limited() -> bool:
    return config.effective_cpu_count() < (os.cpu_count() or 1)


def _record_nodes(ort: Any, options: Any, name: str) -> None:
    if can_record(ort):
        options.add_session_config_entry(RECORD_KEY, "1")
        return
    if options.enable_profiling:
        reason = "devicecore needs the profile of an onnxruntime before 1.24 for itself"
        raise ModelError(name, reason, "pip install --upgrade onnxruntime")
    from tempfile import gettempdir  # late: only an old ONNX Runtime needs it

    with suppress(OSError):  # no folder to write to: `OpenedSession` says what comes of it
        options.profile_file_prefix = str(Path(gettempdir()) / f"devicecore_{os.getpid()}")
        options.enable_profiling = True


def _optimise_once(ort: Any, options: Any, recipe: Recipe) -> None:
    """Write the optimised model, or do not optimise one again that was written."""
    if recipe.saves_to is not None:
        options.optimized_model_filepath = str(recipe.saves_to)
        options.add_session_config_entry("session.save_model_format", "ORT")
    elif recipe.nodes is not None:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def _create(ort: Any, recipe: Recipe, options: Any) -> Any:
    spec = recipe.spec
    wanted = Preferences(recipe.precision, recipe.engines, thread_limit(recipe.threads))
    if spec.is_plugin:
        add_provider(ort, options, spec, wanted)
        return ort.InferenceSession(recipe.model, options, enable_fallback=0)
    _prepare(ort, spec.provider)
    _record_lost_precision(spec, wanted, {})
    providers = [
        (spec.provider, provider_options(spec, wanted, {})),
        *in_between(spec, wanted, ort.get_available_providers()),
    ]
    return ort.InferenceSession(recipe.model, options, providers=providers, enable_fallback=0)


def add_provider(ort: Any, options: Any, spec: SessionSpec, wanted: Preferences) -> None:
    """Put the provider of *spec* first in *options*, ONNX Runtime's ``SessionOptions``.

    Raises:
        NotLiveError: ONNX Runtime does not have it, or it has no such device.
    """
    if spec.is_plugin:
        if spec.library is not None:
            register(spec.library)
        device = native_device(spec.provider, spec.ep_device_index or 0)
        metadata = dict(device.ep_metadata)
        _record_lost_precision(spec, wanted, metadata)
        options.add_provider_for_devices([device], provider_options(spec, wanted, metadata))
    else:
        _prepare(ort, spec.provider)
        if spec.provider == CPU_PROVIDER:  # which is always there, as the last one
            return
        _record_lost_precision(spec, wanted, {})
        options.add_provider(spec.provider, provider_options(spec, wanted, {}))
    for provider, further in in_between(spec, wanted, ort.get_available_providers()):
        options.add_provider(provider, further)


def _record_lost_precision(
    spec: SessionSpec, wanted: Preferences, metadata: Mapping[str, str]
) -> None:
    if reason := lost_precision(spec, wanted, metadata):
        default_ledger().record("a session", "float32", "half precision", reason)


def _prepare(ort: Any, provider: str) -> None:
    """Load what the library of *provider* needs, or raise if there is no such provider."""
    _refuse_unknown(ort, provider)
    if library := provider_library(provider):
        preload(library)


def _refuse_unknown(ort: Any, provider: str) -> None:
    """Raise where ONNX Runtime would take the CPU with a warning at most."""
    if provider not in ort.get_available_providers():
        package = ort_package() or OrtPackage(Path())
        raise NotLiveError(provider, *lack_of(provider_named(provider), package))


def _explained(error: DeviceCoreError, spec: SessionSpec) -> DeviceCoreError:
    """Return *error*, or the one that names what the provider's library misses, if it does."""
    cause = missing_cause(spec) if isinstance(error, NotLiveError) else None
    return NotLiveError(spec.provider, *cause) if cause else error
