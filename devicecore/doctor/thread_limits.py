"""More threads than CPUs: ONNX Runtime counts those of the machine, not those it may use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from devicecore import config
from devicecore.doctor.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case


def find(case: Case) -> Iterator[Finding]:
    """Yield a limit on this process's CPUs that thread pools do not see."""
    del case
    usable, all_of_them = config.effective_cpu_count(), os.cpu_count() or 1
    if usable < all_of_them:
        yield Finding(
            "threads-vs-limits",
            f"thread pools start for {all_of_them} CPUs, and this process may use {usable}",
            f"affinity and the container's quota leave {usable} of {all_of_them} CPUs; threads "
            "that wait in a loop take the time of those that work",
            f"options.intra_op_num_threads = {usable}; "
            'options.add_session_config_entry("session.intra_op.allow_spinning", "0"); '
            f"export OMP_NUM_THREADS={usable}",
        )
