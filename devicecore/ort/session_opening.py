"""`open_session`: options checked, an engine used that was kept, and never another provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.optional import require
from devicecore.ort.engines import create_with_engine, keeps_engines
from devicecore.ort.known_options import check_provider_options, check_session_options
from devicecore.ort.model_digest import model_digest
from devicecore.ort.model_file import checked_model, described
from devicecore.ort.session_attributes import OPTIMISED_FILE
from devicecore.ort.session_creation import Recipe, create
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from devicecore.ort.engines import CachePolicy
    from devicecore.ort.provider_options import Precision
    from devicecore.ort.session import OpenedSession
    from devicecore.ort.spec import SessionSpec


def open_session(
    model: bytes | str | Path,
    spec: SessionSpec,
    *,
    precision: Precision = "f32",
    min_nodes: float | None = None,
    threads: int | None = None,
    provider_options: Mapping[str, str] | None = None,
    session_options: Mapping[str, str] | None = None,
    custom_op_libraries: Sequence[str] = (),
    cache: CachePolicy = "none",
    device: str = "",
    digest: str = "",
) -> OpenedSession:
    """Open *model* on the provider that *spec* names, or raise: there is no fallback.

    Nodes that the provider does not take run on the CPU, as ONNX Runtime places them; how many it
    took is known afterwards, and none at all is an error. Nothing is printed.

    Args:
        model: The file, or its bytes.
        spec: Provider, options and device.
        precision: What the provider computes in; see `devicecore.ort.provider_options`.
        min_nodes: The share of the nodes, from 0 to 1, that the provider must take.
        threads: Threads of the session; None for as many CPUs as this process may really use.
        provider_options: Further options of the provider; they go before those of *spec*.
        session_options: Further configuration entries of the session, such as
            ``{"session.disable_prepacking": "1"}``.
        custom_op_libraries: The libraries of its operators that ONNX Runtime lacks.
        cache: Which engines are kept for the next process; see `devicecore.ort.engines`.
        device: What tells the hardware from other hardware that the provider may run on.
        digest: The model's digest, where it is known; else it is made where one is needed.

    Raises:
        ModelError: The model is at fault, or an option that would be ignored.
        NotLiveError: The provider does not work here, or takes too few of the nodes.
        OutOfMemoryError: The device has too little memory for the model.
        EngineCacheError: The folder for engines cannot be used.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    source = checked_model(model)
    require("onnxruntime", extra="onnx")
    name = described(model)
    check_provider_options(name, spec, provider_options or {})
    check_session_options(name, spec, session_options or {})
    if provider_options:
        spec = evolve(spec, options={**spec.options, **provider_options})
    recipe = Recipe(
        source,
        name,
        spec,
        precision,
        min_nodes,
        threads,
        session_options or {},
        custom_operators=tuple(custom_op_libraries),
    )
    # What the program has written for itself cannot be written into the cache too.
    writes = spec.provider == CPU_PROVIDER and OPTIMISED_FILE in recipe.entries
    if keeps_engines(spec, cache) and not writes:
        return create_with_engine(recipe, digest or model_digest(model), device)
    return create(recipe)
