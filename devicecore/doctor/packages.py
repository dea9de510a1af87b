"""Packages that are hidden by a file of the program, emptied, or built for another NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.optional import installed, package_dir
from devicecore.optional.faults import is_itself, numpy_fault, package_fault, shadow
from devicecore.optional.packages import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case
    from devicecore.optional.faults import PackageFault

# Those that we use ourselves come first.
_OURS = ("onnxruntime", "torch", "cv2", "numpy")
_MODULES = (*_OURS, *sorted(FRAMEWORKS.difference(_OURS)))


def find(case: Case) -> Iterator[Finding]:
    """Yield what is wrong with each package before anything of it runs."""
    del case
    for module in _MODULES:
        fault = package_fault(module)
        if fault is None and (hidden := _hidden_in_working_folder(module)):
            yield hidden
        elif fault is not None and fault.state == "shadowed":
            yield _shadowed(module, fault, "python looks in its folder first")
        elif fault is not None and module != "onnxruntime":  # of its builds another file tells
            problem = f"{module} has none of its functions: its files are not there any more"
            yield Finding("emptied-package", problem, fault.reason, fault.fix)
        if module != "numpy" and installed(module) and (wrong := numpy_fault(module)):
            yield Finding(
                "numpy-1-binaries",
                f"{module} cannot use NumPy: it was built for NumPy 1, and NumPy 2 is installed",
                f"{wrong.reason}; its binary asks for numpy.core only",
                wrong.fix,
            )


def _hidden_in_working_folder(module: str) -> Finding | None:
    """Return what programs that start here would get, though this one does not."""
    for path in (Path.cwd() / f"{module}.py", Path.cwd() / module / "__init__.py"):
        place = path if path.suffix == ".py" and path.stem == module else path.parent
        if path.is_file() and package_dir(module) != path.parent and not is_itself(module, path):
            seen = "programs and notebooks in this folder look there first"
            return _shadowed(module, shadow(module, place, hides=installed(module)), seen)
    return None


def _shadowed(module: str, fault: PackageFault, seen: str) -> Finding:
    return Finding(
        "shadowed-package",
        f"a file of the program has the name of {module}, and is imported in its place",
        f"{fault.reason}; {seen}",
        fault.fix,
        # A game may have a file paddle.py of its own, and never want the package.
        is_advice=module not in _OURS and fault.reason.endswith("is not installed"),
    )
