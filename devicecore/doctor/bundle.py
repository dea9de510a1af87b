"""One text file for a bug report: what the doctor says, the versions, and no secrets."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING

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
        path: The file; one that is there is replaced.
        report: What the doctor said.

    Raises:
        OSError: It cannot be written.
    """
    text = redacted("\n".join([*_machine(), "", report.rstrip(), ""]))
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _machine() -> list[str]:
    settings = config.load()
    lines = [
        f"devicecore {__version__}",
        f"Python {platform.python_version()} ({platform.python_implementation()})",
        f"{platform.system()} {platform.release()}, {platform.machine()}, "
        f"{' '.join(filter(None, platform.libc_ver()))}".rstrip(", "),
        f"{config.effective_cpu_count()} of {os.cpu_count()} CPUs may be used",
        f"in an environment of its own: {'yes' if sys.prefix != sys.base_prefix else 'no'}",
    ]
    lines += [f"{name}={value}" for name, value in sorted(settings.visible.items())]
    lines += [f"prefer {', '.join(settings.prefer)}"] if settings.prefer else []
    lines += [f"exclude {', '.join(sorted(settings.exclude))}"] if settings.exclude else []
    return [*lines, "packages", *(f"  {each}" for each in _packages())]


def _packages() -> list[str]:
    return sorted(
        {
            f"{name} {distribution.version}"
            for distribution in distributions()
            if (name := distribution.metadata["Name"]) and name.lower().startswith(_PACKAGES)
        }
    )
