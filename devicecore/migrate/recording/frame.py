"""`RecordedFrame`: one call of a recorded function; computes on a device what the program reads."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from devicecore.errors import OutOfMemoryError, RefusedCallError
from devicecore.first_use import first_use
from devicecore.migrate.calls.call_site import free_caches
from devicecore.migrate.recording.nodes import compute_on_host
from devicecore.migrate.recording.recording import Recording
from devicecore.migrate.recording.snapshots import copy_array, pin_array

if TYPE_CHECKING:
    import numpy as np

    from devicecore.device import Device
    from devicecore.first_use import Stopwatch
    from devicecore.migrate.calls.call_site import CallSite
    from devicecore.migrate.recording.nodes import Node

    Array = np.ndarray[Any, Any]


class RecordedFrame:
    """One call of a recorded function.

    Args:
        site: The calls of that path.
        device: What computes them.

    Attributes:
        recording: What it has called.
        moved: The bytes that went to the device and back.
        is_right: Whether the device has computed all that was asked of it.
    """

    def __init__(self, site: CallSite, device: Device) -> None:
        self.recording: Recording = Recording(
            self._fetch, self._keep, device, site.options, owner=site.policy
        )
        self.moved: int = 0
        self.is_right: bool = True
        self._host_s = 0.0
        self._counted_s = 0.0
        self._site = site
        self._device = device
        self._verify = site.attempt.is_due()

    def _fetch(self, node: Node) -> Array:
        """Return values as an array of numpy; what the device cannot, the originals compute."""
        found, reason, is_fault = self._tried(node)
        if found is not None:
            return found
        site = self._site
        site.attempt.record(reason)
        before = self._host_s
        original = partial(self._by_originals, node)
        answer: Array = site.attempt.instead(reason, original, is_fault=is_fault)
        spent = self._host_s - before
        self._host_s = before  # it is counted here
        self._counted_s += spent
        site.tally.fell_back(spent, reason)
        return answer

    def _tried(self, node: Node) -> tuple[Array | None, str, bool]:
        """Return what the device computes; else None, why it does not, and if that is a fault."""
        site = self._site
        try:
            reason = self._why_lacking(node)
            if reason:
                return None, reason, False
            found = self._computed(node)
        except Exception as error:  # of a framework: whatever it is, the originals can
            self.is_right = False
            if isinstance(error, OutOfMemoryError):
                free_caches(error)
            if site.policy.is_strict:
                raise
            reason = site.tally.bounded(f"{type(error).__name__}: {error}")
            return None, reason, not isinstance(error, RefusedCallError)
        if not self._verify:
            return found, "", False
        expected: Array = self._by_originals(node)
        if site.policy.within_tolerance(site.options.accept, found, expected):
            return expected, "", False
        self.is_right = False
        reason = f"its result was not {site.options.accept}, so it is not used any more"
        site.attempt.switch_off(reason)
        site.attempt.refuse(reason)
        return None, reason, False

    def count(self, watch: Stopwatch) -> None:
        """Count the frame: what the originals took in it is the host's time."""
        seconds, once = watch.read()
        seconds = max(0.0, seconds - self._host_s - self._counted_s)
        self._site.tally.migrated(seconds, self.moved, host=self._host_s, first_use=once)

    def _by_originals(self, node: Node) -> Array:
        start = time.perf_counter()
        try:
            found: Array = compute_on_host(node)
            return found
        finally:
            self._host_s += time.perf_counter() - start

    def _why_lacking(self, node: Node) -> str:
        """Return which type the device has not; that is no fault of its."""
        with first_use():
            from devicecore.migrate.recording.missing_types import (
                find_missing_type,  # it imports torch
            )

        with self._site.policy.inside_kernels():
            reason = find_missing_type(self._device, [node])
        if reason:
            self._site.attempt.refuse(reason)
        return reason

    def _computed(self, node: Node) -> Array:
        with first_use():
            from devicecore.migrate.recording import execution

        with self._site.policy.inside_kernels():
            found = execution.download(
                execution.compute_node(self._device, node, is_strict=self._site.policy.is_strict)
            )
        self._count(found)
        return found

    def _keep(self, array: Array) -> Node:
        self._count(array)
        return pin_array(array) if self._device.device_type == "CUDA" else copy_array(array)

    def _count(self, array: Array) -> None:
        if not self._device.reads_host_memory:
            self.moved += array.nbytes
