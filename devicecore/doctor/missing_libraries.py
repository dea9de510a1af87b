"""Libraries that a provider needs and that this machine has not, or in another major version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.doctor.libraries import copies, is_tensorrt, lacks
from devicecore.ort import ort_package
from devicecore.ort.libraries import install_hint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case


def find(case: Case) -> Iterator[Finding]:
    """Yield all that each provider misses, at once."""
    package = ort_package()
    for lack in lacks(case):
        later = [name for name, place in lack.later.items() if place is None]
        missing = tuple(name for name in (*lack.nowhere, *later) if not is_tensorrt(name))
        if not missing or package is None:
            continue
        others = [copy for name in missing for copy in copies(name)]
        here = f"; here are {', '.join(map(str, others))}" if others else ""
        yield Finding(
            "missing-or-wrong-major-library",
            f"{lack.provider.name} lacks {len(missing)} of the libraries that it needs",
            f"{lack.library.name} of {package.label} needs {', '.join(missing)}{here}",
            install_hint(missing, package.cuda_version),
        )
