"""One text file for a bug report: what the doctor says, the versions, and no secrets."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING, Any

from devicecore import __version__, config
from devicecore.doctor.redaction import redacted

if TYPE_CHECKING:
    from pathlib import Path

# Only these are named: what else somebody has installed is nobody's business.
_PACKAGES = (
    *("attrs", "cuda", "cupy", "devicecore", "kornia", "migraphx", "ml-dtypes", "numpy", "nvidia"),
    *("nxrt", "onnx", "opencv", "openvino", "pillow", "platformdirs", "rapidocr", "ray", "rocm"),
    *("scikit-image", "tensorrt", "torch", "triton"),
)


def write_bundle(path: Path, report: str) -> None:
    """Write *report* with the versions of this machine to *path*, readable by its owner only.

    Args:
        path: The file; one that is there is replaced. A device or a pipe is written to.
        report: What the doctor said.

    Raises:
        OSError: It cannot be written.
    """
    text = redacted("\n".join([*_machine(), "", report.rstrip(), ""]))
    if path.exists() and not path.is_file():
        descriptor = os.open(path, os.O_WRONLY)
    else:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def machine() -> dict[str, Any]:
    """Return what a bundle says of this machine, as plain data."""
    settings = config.load()
    return {
        "devicecore": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": " ".join(filter(None, platform.libc_ver())),
        "cpus": {"may_be_used": config.effective_cpu_count(), "of": os.cpu_count()},
        "environment_of_its_own": sys.prefix != sys.base_prefix,
        "visible": dict(sorted(settings.visible.items())),
        "prefer": list(settings.prefer),
        "exclude": sorted(settings.exclude),
        "packages": _packages(),
    }


def _machine() -> list[str]:
    known = machine()
    lines = [
        f"devicecore {known['devicecore']}",
        f"Python {known['python']}",
        f"{known['system']}, {known['machine']}, {known['libc']}".rstrip(", "),
        f"{known['cpus']['may_be_used']} of {known['cpus']['of']} CPUs may be used",
        f"in an environment of its own: {'yes' if known['environment_of_its_own'] else 'no'}",
    ]
    lines += [f"{name}={value}" for name, value in known["visible"].items()]
    lines += [f"{what} {', '.join(known[what])}" for what in ("prefer", "exclude") if known[what]]
    return [*lines, "packages", *(f"  {each}" for each in known["packages"])]


def _packages() -> list[str]:
    return sorted(
        {
            f"{name} {distribution.version}"
            for distribution in distributions()
            if (name := distribution.metadata["Name"]) and name.lower().startswith(_PACKAGES)
        }
    )
