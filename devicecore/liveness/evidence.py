"""Evidence kept on disk, so that the next process need not probe again.

A piece of evidence is worth something only where it was gathered: its key covers the packages, the
driver, the devices, the variables that hide devices, the loader's path, the environment's prefix
and the user. Failures are forgotten sooner than successes, since people mend them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore import config
from devicecore.optional import package_dir
from devicecore.trusted_files import read_json, set_aside, why_untrusted

if TYPE_CHECKING:
    from collections.abc import Iterable

LIVE_FOR_S = 24 * 3600.0
OTHERWISE_FOR_S = 600.0

_MARK = "devicecore evidence"  # what lacks it is somebody else's
_MOST_BYTES = 1 << 20

# What drivers say of themselves and of the GPUs, where a file says it.
_DRIVER_FILES = (
    "/proc/driver/nvidia/version",
    "/sys/module/amdgpu/version",
    "/sys/module/xe/version",
)
_GPU_PATTERNS = (
    ("/proc/driver/nvidia/gpus", "*/information"),
    ("/dev", "nvidia[0-9]*"),
    ("/dev/dri", "renderD*"),
    ("/dev", "kfd"),
)


class EvidenceCache:
    """Evidence in one folder, a file for each key.

    A folder that cannot be written costs the next process a probe, never this one an error.
    Evidence names libraries that are then loaded, so none is believed that others can have written.

    Args:
        folder: Where; None for ``evidence`` in the cache folder of the configuration.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Where the evidence is kept.

        Raises:
            FileNotFoundError: This user has no folder for caches.
        """
        if self._folder is not None:
            return self._folder
        root = config.load().cache_dir
        if root is None:
            raise FileNotFoundError(0, "this user has no folder for caches")
        return root / "evidence"

    def usable_folder(self, *, make: bool = False) -> Path | None:
        """Return the folder if it is there and nobody else can write to it.

        Args:
            make: Make it where it is missing.
        """
        try:
            folder = self.folder
            if make:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            reason = why_untrusted(folder)
        except OSError:
            return None
        if reason:
            _say_once(folder, reason)
            return None
        return folder

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the evidence under *key*, or None where there is none or it is too old."""
        folder = self.usable_folder()
        kept = folder and _own_entry(folder / f"{key}.json")
        if not kept:
            return None
        try:
            age = time.time() - kept["time"]  # whatever number it is
            report: dict[str, Any] = kept["report"]
            live = report["liveness"]["state"] == "live"
        except (KeyError, TypeError, OverflowError):
            return None
        return report if 0 <= age < (LIVE_FOR_S if live else OTHERWISE_FOR_S) else None

    def put(self, key: str, report: dict[str, Any]) -> None:
        """Keep *report* under *key*, in place at once or not at all."""
        text = json.dumps({"mark": _MARK, "key": key, "time": time.time(), "report": report})
        folder = self.usable_folder(make=True)
        if folder is None:
            return
        with suppress(OSError):
            from tempfile import mkstemp  # late, as in all that a start seldom needs

            file = folder / f"{key}.json"
            handle, name = mkstemp(dir=folder, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as part:
                    part.write(text)
                if file.is_dir():
                    set_aside(file)
                Path(name).replace(file)
            except OSError:
                Path(name).unlink(missing_ok=True)

    def drop(self, key: str) -> None:
        """Delete the evidence under *key*, if there is any."""
        if folder := self.usable_folder():
            _delete_own(folder / f"{key}.json")

    def forget(self) -> None:
        """Delete all evidence, and no other file that lies beside it."""
        folder = self.usable_folder()
        with suppress(OSError):
            for file in folder.glob("*.json") if folder else ():
                _delete_own(file)


def _own_entry(file: Path) -> dict[str, Any] | None:
    """Return what *file* holds, if this class wrote it under this name."""
    kept = read_json(file, most_bytes=_MOST_BYTES)
    if not isinstance(kept, dict) or (kept.get("mark"), kept.get("key")) != (_MARK, file.stem):
        return None
    return kept


def _delete_own(file: Path) -> None:
    if _own_entry(file) is not None:
        with suppress(OSError):
            file.unlink(missing_ok=True)


@cache
def _say_once(folder: Path, reason: str) -> None:
    import logging  # late: it costs a third of the import budget

    text = "evidence is neither kept in nor read from %s: it %s"
    logging.getLogger("devicecore").warning(text, folder, reason)


def evidence_key(subject: str, modules: Iterable[str], *versions: str) -> str:
    """Return the key of evidence about *subject* as things are now.

    Args:
        subject: What is probed, such as a factory and a framework.
        modules: Modules whose code decides the answer; of a package its version counts as well.
        versions: Whatever else decides it, such as the version of a plug-in's distribution.
    """
    from hashlib import sha256

    settings = config.load()
    facts = [
        subject,
        *versions,
        sys.prefix,
        sys.executable or "",
        sys.version,
        str(os.getuid() if hasattr(os, "getuid") else ""),
        *(f"{name}={value}" for name, value in sorted(settings.visible.items())),
        *settings.library_path,
        *(_stamp(module) for module in sorted(set(modules))),
        *(_text(Path(name)) for name in _DRIVER_FILES),
        *_gpus(),
    ]
    return sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _stamp(module: str) -> str:
    """Return what changes when a module, or the package that it lies in, is installed anew."""
    top, *rest = module.split(".")
    folder = package_dir(top)
    if folder is None:
        return f"{module}: not installed"
    # An upgrade rewrites these; reading metadata would cost ten times as much.
    files = [folder / name for name in ("__init__.py", "version.py", "_version.py", f"{top}.py")]
    if rest:
        inner = folder.joinpath(*rest)
        files += [inner.with_suffix(".py"), inner / "__init__.py"]
    stamps = [
        f"{file.name}:{status.st_mtime_ns}:{status.st_size}"
        for file in files
        if (status := _status(file)) is not None
    ]
    return f"{module}: {folder} {' '.join(stamps)}"


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None


def _gpus() -> list[str]:
    gpus = []
    for folder, pattern in _GPU_PATTERNS:
        with suppress(OSError):
            gpus += [f"{path}={_text(path)}" for path in sorted(Path(folder).glob(pattern))]
    return gpus


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""
