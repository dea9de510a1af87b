"""Engines that are kept: built at a model's first session, used by the later ones.

Providers that compile a model keep what they built where we say; for the CPU, ONNX Runtime writes
the model as it has optimised it.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import evolve

from devicecore import config
from devicecore.errors import ModelError, NotLiveError
from devicecore.ort.build_notice import build_notice
from devicecore.ort.engine_cache import EngineCache, EngineKey
from devicecore.ort.model_digest import model_digest
from devicecore.ort.model_file import described
from devicecore.ort.package import ort_package
from devicecore.ort.provider_options import ENGINE_OPTIONS, OPENVINO
from devicecore.ort.session_creation import Recipe, create
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.ort.engine_cache import Entry
    from devicecore.ort.provider_options import Precision
    from devicecore.ort.session import OpenedSession
    from devicecore.ort.spec import SessionSpec

CachePolicy = Literal["engines", "all", "none"]
"""``"engines"`` keeps what providers compile, ``"all"`` optimised models of the CPU as well."""

CACHE_POLICIES: tuple[CachePolicy, ...] = ("engines", "all", "none")

_OPTIMISED = "model.ort"


def keeps_engines(spec: SessionSpec, policy: CachePolicy) -> bool:
    """Return whether *policy* keeps what sessions of *spec* build.

    A program that names a folder of its own in the options keeps its engines there. A user without
    a home has no folder to keep any in.
    """
    if policy == "none" or config.load().cache_dir is None:
        return False
    if spec.provider == CPU_PROVIDER:
        return policy == "all"
    known = ENGINE_OPTIONS.get(spec.provider)
    if known is None:
        return False
    named = any(option in spec.options for option in known.folders)
    return not named and "CACHE_DIR" not in spec.options.get("load_config", "")


def engine_folder(
    model: bytes | str | Path, spec: SessionSpec, device: str, precision: Precision = "f32"
) -> str:
    """Return the folder for the engines of *model* in a session that a program opens itself.

    Empty where the provider keeps none, or keeps them in a folder that *spec* names. A folder
    serves one model: TensorRT, for one, takes the engine of another model of the same structure.

    Raises:
        EngineCacheError: The folder cannot be used.
        ModelError: The model cannot be read.
    """
    if not keeps_engines(spec, "engines"):
        return ""
    source = model if isinstance(model, bytes) else str(model)
    entries = {"opened by": "the program"}
    recipe = Recipe(source, described(model), spec, precision, entries=entries)
    with EngineCache().entry(_key(recipe, model_digest(model), device)) as entry:
        entry.is_sealed = False  # the provider writes into it only later
        return str(entry.folder)


def create_with_engine(recipe: Recipe, digest: str, device: str) -> OpenedSession:
    """Make the session of *recipe* with the engine that was kept for it, or keep a new one.

    An engine that its provider no longer takes is built anew, once.

    Args:
        recipe: What the session is made of.
        digest: The digest of its model.
        device: What tells the hardware from other hardware that the provider may run on.

    Raises:
        EngineCacheError: The folder for engines cannot be used.
        ModelError: As `create`.
        NotLiveError: As `create`.
        OutOfMemoryError: As `create`.
    """
    make = _with_optimised if recipe.spec.provider == CPU_PROVIDER else _with_engine
    engines, key = EngineCache(), _key(recipe, digest, device)
    anyhow = evolve(recipe, min_nodes=None)  # an engine is none the worse for what is asked of it
    opened = None
    if kept := engines.kept(key):
        with suppress(ModelError, NotLiveError):
            opened = make(anyhow, kept)
    if opened is None:
        with engines.entry(key) as entry:
            if kept and not entry.is_new:
                entry.renew()
            opened = make(anyhow, entry)
            # The file may be another one by now than the one that the digest was made of.
            entry.is_right = not entry.is_new or model_digest(recipe.model) == digest
    opened.demand(recipe.min_nodes)
    return opened


def _with_engine(recipe: Recipe, entry: Entry) -> OpenedSession:
    provider = recipe.spec.provider
    known = ENGINE_OPTIONS[provider]
    # OpenVINO inside a build writes its file anew at each load, the plug-in does not.
    entry.is_sealed = known.is_sealed or (provider == OPENVINO and recipe.spec.is_plugin)
    recipe = evolve(recipe, engines=str(entry.folder))
    if not entry.is_new:
        return create(recipe)
    with build_notice(provider, recipe.name, at_once=known.is_slow):
        return create(recipe)


def _with_optimised(recipe: Recipe, entry: Entry) -> OpenedSession:
    file = entry.folder / _OPTIMISED
    if not entry.is_new and not file.exists():  # the model is of a kind that cannot be written
        return create(recipe)
    if not entry.is_new:
        return create(evolve(recipe, model=str(file), nodes=entry.notes["nodes"]))
    try:
        opened = create(evolve(recipe, saves_to=file))
    except ModelError:
        opened = create(recipe)
        file.unlink(missing_ok=True)
    entry.notes["nodes"] = dict(opened.nodes)
    return opened


def _key(recipe: Recipe, digest: str, device: str) -> EngineKey:
    spec = recipe.spec
    package = ort_package()
    version = [package.label if package else ""]
    if spec.library is not None:
        version += _files([spec.library]).values()
    return EngineKey(
        model=digest,
        provider=spec.provider,
        version=", ".join(version),
        device=f"{device or spec.ep_device_index} beside {_host()}",
        precision=recipe.precision,
        options={**spec.options, **recipe.entries, **_files(recipe.custom_operators)},
    )


def _files(libraries: Iterable[str]) -> dict[str, str]:
    """Return what tells each of *libraries* from another of its name; nothing of missing ones."""
    found = {}
    for library in libraries:
        with suppress(OSError):
            facts = Path(library).stat()
            found[library] = f"{Path(library).name} {facts.st_size} {facts.st_mtime_ns}"
    return found


@cache
def _host() -> str:
    """Return the kind of CPU: what is made for one may not run on another, or compute otherwise."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    first = text.partition("\n\n")[0].splitlines()
    wanted = ("model", "stepping", "flags", "Features", "CPU ")
    kind = [line.partition(":")[2].strip() for line in first if line.startswith(wanted)]
    return f"{platform.machine()} {sha256(' '.join(kind).encode()).hexdigest()[:16]}"
