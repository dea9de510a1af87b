"""Several builds of ONNX Runtime in one folder, or what is left after one of them was removed."""

from __future__ import annotations

from importlib.metadata import packages_distributions, version
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from devicecore.doctor.diagnosis import Finding
from devicecore.ort import ort_package
from devicecore.ort.package import leftover_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.doctor.case import Case

_NAME = "two-onnxruntime-packages"


def find(case: Case) -> Iterator[Finding]:
    """Yield what is wrong with the folder that all builds of ONNX Runtime share."""
    del case
    recorded = sorted(set(packages_distributions().get("onnxruntime", ())))
    package, leftover = ort_package(), leftover_folder()
    if package is None and leftover is not None:
        yield Finding(
            _NAME,
            "onnxruntime imports as an empty package: one build of it was uninstalled, and took "
            "the files of another along",
            f"{leftover} has no __init__.py; pip still lists {', '.join(recorded) or 'none'}",
            f"pip install --force-reinstall --no-deps {_best(recorded)}",
        )
    elif package is not None and len(recorded) > 1:
        yield Finding(
            _NAME,
            "several builds of ONNX Runtime share one folder, and the one installed last wins",
            f"pip lists {', '.join(map(_with_version, recorded))}; an import gets {package.label}",
            f"pip uninstall -y {' '.join(recorded)} && pip install {_best(recorded)}",
        )
    elif package is not None and recorded and package.distribution:
        (only,) = recorded
        names_differ = canonicalize_name(package.distribution) != canonicalize_name(only)
        if names_differ or _release(package.version) != _release(version(only)):
            yield Finding(
                _NAME,
                "the files of ONNX Runtime are those of another build than pip lists",
                f"pip lists {_with_version(only)}; an import gets {package.label}",
                f"pip install --force-reinstall --no-deps {only}",
            )


def _release(text: str) -> str:
    """Return *text* without what packagers add to it, such as ``".post1"``."""
    return Version(text).base_version if text else ""


def _with_version(name: str) -> str:
    return f"{name} {version(name)}"


def _best(recorded: Sequence[str]) -> str:
    """Return the build to keep: whoever installed one for an accelerator wants that one."""
    return next((name for name in recorded if name != "onnxruntime"), "onnxruntime")
