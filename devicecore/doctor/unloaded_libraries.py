"""Libraries that are installed where the loader does not look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.doctor.libraries import is_tensorrt, lacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case


def find(case: Case) -> Iterator[Finding]:
    """Yield the providers that work only after something else has loaded their libraries."""
    for lack in lacks(case):
        found = {**lack.elsewhere, **lack.later}
        places = {name: file for name, file in found.items() if file and not is_tensorrt(name)}
        if not places:
            continue
        folders = dict.fromkeys(str(file.parent) for file in places.values())
        yield Finding(
            "libraries-present-but-not-loaded",
            f"{lack.provider.name} works only once something else has loaded its libraries, as "
            "importing torch does",
            f"the loader does not find {', '.join(places)}, which lie in {', '.join(folders)}",
            f'export LD_LIBRARY_PATH="{":".join(folders)}:$LD_LIBRARY_PATH"',
        )
