"""TensorRT: in another major version than ONNX Runtime was built for, or off the loader's path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.doctor.libraries import copies, is_tensorrt, lacks
from devicecore.ort import ort_package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case
    from devicecore.doctor.libraries import Lack

_NAME = "tensorrt-version-or-path"
_MAJOR = re.compile(r"\.so\.(\d+)")


def find(case: Case) -> Iterator[Finding]:
    """Yield what the TensorRT provider wants, and what there is instead."""
    for lack in lacks(case):
        if wanted := [name for name in (*lack.nowhere, *lack.elsewhere) if is_tensorrt(name)]:
            yield _of(lack, wanted)


def _of(lack: Lack, wanted: list[str]) -> Finding:
    needs = f"{lack.library.name} needs {', '.join(wanted)}"
    if all(name in lack.elsewhere for name in wanted):
        folders = dict.fromkeys(str(lack.elsewhere[name].parent) for name in wanted)
        return Finding(
            _NAME,
            "TensorRT is installed where the loader does not look",
            f"{needs}, which lie in {', '.join(folders)}",
            f'export LD_LIBRARY_PATH="{":".join(folders)}:$LD_LIBRARY_PATH"',
        )
    majors = "".join(found[1] for found in [_MAJOR.search(wanted[0])] if found)
    others = dict.fromkeys(str(copy) for name in wanted for copy in copies(name))
    problem = (
        f"TensorRT is installed in another version than {majors}"
        if others
        else f"TensorRT {majors} is not installed"
    )
    package = ort_package()
    cuda = package.cuda_version.partition(".")[0] if package else ""
    return Finding(
        _NAME,
        problem,
        f"{needs}; here are {', '.join(others)}" if others else needs,
        f"pip install 'tensorrt-cu{cuda or 13}=={majors}.*'",
    )
