"""The environment as a value: the only file that reads it, and nothing writes it."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore import cgroups
from devicecore.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# These decide which devices a driver shows, so evidence gathered under others is worth nothing.
_VISIBILITY = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "ZE_AFFINITY_MASK",
    "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER",
    "VK_ICD_FILENAMES",
    "VK_DRIVER_FILES",
)

# Programs that start others with devices hidden, or whose processes outlive a change of a variable.
_HOST_PROGRAMS = {
    "RAY_RAYLET_PID": "Ray",
    "RAY_JOB_ID": "Ray",
    "SLURM_JOB_ID": "SLURM",
    "JPY_PARENT_PID": "Jupyter",
}

_CACHE_MIB = 4096
_MOST_DIGITS = 12
_LONGEST_S = 86_400
_SECRET = ("TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH", "COOKIE", "DSN")
_SHORTEST_SECRET = 6  # a shorter value, such as "1", stands in other texts too


@frozen
class Config:
    """What the environment says.

    Attributes:
        cache_dir: Folder for evidence and compiled engines (``DEVICECORE_CACHE_DIR``); None for a
            user without a home, for whom nothing is kept.
        cache_bytes: How much the compiled engines may take, in bytes; the variable counts MiB
            (``DEVICECORE_CACHE_MIB``).
        prefer: Device types that go first, in this order, whatever their priority
            (``DEVICECORE_PREFER``, separated by commas).
        exclude: Device types that are never loaded nor probed (``DEVICECORE_EXCLUDE``).
        probe_timeout_s: Seconds that one probe may take; None leaves it to the factory
            (``DEVICECORE_PROBE_TIMEOUT``).
        migrates: Whether `PipelineMigrator` does anything (``DEVICECORE_MIGRATE``).
        visible: The variables that hide devices from their drivers, where set.
        host_program: What runs this process and may have hidden devices from it: ``"Ray"``,
            ``"SLURM"`` or ``"Jupyter"``; empty if it is none of these.
        library_path: Folders that the dynamic loader searches first.
    """

    cache_dir: Path | None
    cache_bytes: int
    prefer: tuple[str, ...]
    exclude: frozenset[str]
    probe_timeout_s: float | None
    migrates: bool
    visible: Mapping[str, str]
    host_program: str
    library_path: tuple[str, ...]


def load() -> Config:
    """Read the environment as it is now.

    Raises:
        ConfigurationError: A variable of ours has a value that it cannot have.
    """
    environment = os.environ
    return Config(
        cache_dir=_cache_dir(environment.get("DEVICECORE_CACHE_DIR", "")),
        cache_bytes=_mebibytes(environment.get("DEVICECORE_CACHE_MIB", "")),
        prefer=_types(environment.get("DEVICECORE_PREFER", "")),
        exclude=_excluded(environment.get("DEVICECORE_EXCLUDE", "")),
        probe_timeout_s=_seconds(environment.get("DEVICECORE_PROBE_TIMEOUT", "")),
        migrates=_switch("DEVICECORE_MIGRATE", environment.get("DEVICECORE_MIGRATE", "")),
        visible={name: environment[name] for name in _VISIBILITY if name in environment},
        host_program=next(
            (_HOST_PROGRAMS[name] for name in _HOST_PROGRAMS if name in environment), ""
        ),
        library_path=tuple(
            filter(None, environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)),
        ),
    )


def secrets() -> tuple[str, ...]:
    """Return the values of variables whose names say that nobody else may read them."""
    return tuple(
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST_SECRET and any(word in name.upper() for word in _SECRET)
    )


def effective_cpu_count() -> int:
    """Return how many CPUs this process may really use: its affinity, cut by its quotas."""
    if sys.platform == "linux":
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, cgroups.cpu_limit(_read))))


def host_memory_bytes() -> int:
    """Return the memory that this process may use, in bytes; 0 where the system does not say."""
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    return int(min(installed, cgroups.memory_limit(_read)))


def _cache_dir(chosen: str) -> Path | None:
    if not chosen:
        from platformdirs import user_cache_path

        try:
            folder = user_cache_path("devicecore")
        except RuntimeError:  # neither HOME nor an entry in passwd, as in many containers
            return None
        return folder if folder.is_absolute() else None
    from pathlib import Path  # late: it costs a twentieth of a cold start

    try:
        return Path(chosen).expanduser()
    except RuntimeError:  # "~nobody"
        raise ConfigurationError("DEVICECORE_CACHE_DIR", chosen, "the path of a folder") from None


def _mebibytes(text: str) -> int:
    if text and not (text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise ConfigurationError("DEVICECORE_CACHE_MIB", text, "a number of MiB, from 0")
    return int(text or _CACHE_MIB) << 20


def _excluded(text: str) -> frozenset[str]:
    excluded = frozenset(_types(text))
    if "CPU" in excluded:
        possible = "any device types but the CPU, which serves the others"
        raise ConfigurationError("DEVICECORE_EXCLUDE", text, possible)
    return excluded


def _types(text: str) -> tuple[str, ...]:
    return tuple(part.strip().upper() for part in text.split(",") if part.strip())


def _switch(variable: str, text: str) -> bool:
    if text.lower() not in {"", "on", "off"}:
        raise ConfigurationError(variable, text, "on, which is the default, or off")
    return text.lower() != "off"


def _seconds(text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_S:
        possible = f"a number of seconds above 0, up to {_LONGEST_S:,}"
        raise ConfigurationError("DEVICECORE_PROBE_TIMEOUT", text, possible)
    return seconds


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - see `_cache_dir`
            return file.read().strip()
    except OSError:
        return ""
