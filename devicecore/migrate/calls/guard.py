"""Keeps calls on the host: in children of fork, in workers of a loader, or on request."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from devicecore.fork import rearm_after_fork
from devicecore.frameworks import loaded
from devicecore.migrate.calls.arrays import find_arrays, is_tensor
from devicecore.runtime import host_cpu
from devicecore.transfer import tensors_to_device

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devicecore.device import Device


class Guard:
    """Says for a process whether calls may go to a device, and readies workers of loaders."""

    def __init__(self) -> None:
        self._is_child = False
        self._is_ready = False
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Remember that this process is a child, whose parent may have used its GPUs."""
        self._is_child = True
        self._is_ready = False

    def reason(self, device: Device) -> str:
        """Return why calls stay on the host in this process; empty where they may leave it.

        Args:
            device: Where they would go.
        """
        if not self._is_ready:
            self._is_ready = True
            limit_threads()
        if device.gone:
            return device.gone
        if self._is_child and device.device_type == "CUDA" and _is_in_bad_fork():
            return (
                f"process {os.getpid()} was forked after CUDA had started in its parent, and no "
                "child can use that; start workers by spawn or forkserver"
            )
        return ""


def bring_home(result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a call's result: in a loader's worker with its tensors on the host.

    A worker ends before the process that it sends them to has read its GPU's memory. Where the
    program itself has tensors on a device there, that is its own affair.

    Args:
        result: What was computed.
        args: What the call was given.
        kwargs: More of it.

    Raises:
        DeviceError: A tensor cannot go to the host.
    """
    if not is_in_worker() or not any(map(_is_away, find_arrays(result))):
        return result
    if any(map(_is_away, find_arrays([*args, *kwargs.values()]))):
        return result
    return tensors_to_device(result, host_cpu())


def _is_away(value: Any) -> bool:
    return is_tensor(value) and value.device.type != "cpu"


def is_in_worker() -> bool:
    """Return whether this process is a worker of one of torch's loaders."""
    loaders: Any = sys.modules.get("torch.utils.data")
    return loaders is not None and loaders.get_worker_info() is not None


def _is_in_bad_fork() -> bool:
    torch = loaded("torch")
    # What torch asks before it refuses to start CUDA itself.
    return torch is not None and torch.cuda._is_in_bad_fork()  # noqa: SLF001 - nothing public says


def limit_threads() -> None:
    """Leave its own thread to OpenCV in a worker of a loader, as torch leaves one to itself.

    There are as many workers as the machine is meant to have busy, and each one's own pool of
    threads slows the others down; one that was started before a fork can also hang.
    """
    cv2: Any = sys.modules.get("cv2")
    if cv2 is not None and is_in_worker():
        # Of 1, OpenCV would first wait for its threads to end, and a forked child has none.
        cv2.setNumThreads(0)
