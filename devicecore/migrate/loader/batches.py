"""`Batches`: computes the recorded calls of whole batches on a device."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from devicecore.cv.device_types import lacks, missing_types
from devicecore.errors import OutOfMemoryError, RefusedCallError
from devicecore.first_use import Stopwatch
from devicecore.migrate.calls.attempt import Attempt
from devicecore.migrate.calls.call_site import free_caches
from devicecore.migrate.calls.compare import within_tolerance
from devicecore.migrate.calls.report import Tally
from devicecore.migrate.loader.sample_recorder import loosest_options
from devicecore.migrate.recording import execution
from devicecore.migrate.recording.missing_types import find_missing_type
from devicecore.migrate.recording.nodes import compute_on_host, find_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.kernels import Exactness
    from devicecore.migrate.plan.optimization_plan import OptimizationPlan
    from devicecore.migrate.recording.nodes import Node


class Batches:
    """Computes batches on a device or, where it cannot, by the original functions.

    Args:
        device: Where.
        plan: What says how exact results are to be.
        is_strict: Whether an error takes the place of the host's answer.
        verify: Of how many batches one is also computed by the original functions; 0 for none.

    Attributes:
        tally: What became of them.
    """

    def __init__(
        self, device: Device, plan: OptimizationPlan, *, is_strict: bool, verify: int
    ) -> None:
        self.tally: Tally = Tally("DeviceLoader", device.label)
        self._device = device
        self._is_strict = is_strict
        self._attempt = Attempt("DeviceLoader", device.name, is_strict=is_strict, verify=verify)
        self._accept: Exactness = loosest_options(plan).accept
        self._stays = ""  # why its tensors are on the host for good
        self._host_s = 0.0  # of verifying a batch

    def computed(self, frames: Sequence[Sequence[Node]], *, together: bool) -> list[torch.Tensor]:
        """Return values as tensors.

        Args:
            frames: The values that are wanted of each sample.
            together: Whether those of all samples are one tensor; else each frame has one value.

        Raises:
            RefusedCallError: The device cannot, or its result was wrong, and that is an error.
        """
        watch = Stopwatch()
        self._host_s = 0.0
        found, reason, is_fault = self._tried(frames, together=together)
        if found is not None:
            moved = 0 if self._device.reads_host_memory else _given(frames)
            seconds, once = watch.read()
            seconds = max(0.0, seconds - self._host_s)
            self.tally.migrated(seconds, moved, host=self._host_s, first_use=once)
            return found
        self._attempt.refuse(reason)
        reason = self.tally.bounded(reason)
        self._attempt.record(reason)
        seconds, once = watch.read()
        seconds = max(0.0, seconds - self._host_s)
        start = time.perf_counter()
        original = partial(self._on_host, frames, together=together)
        found = self._attempt.instead(reason, original, is_fault=is_fault)
        spent = self._host_s + time.perf_counter() - start
        if self._stays:
            reason = self.tally.bounded(f"{self._stays}; {reason}")
        self.tally.fell_back(spent, reason, device=seconds, first_use=once)
        return found

    def _tried(
        self, frames: Sequence[Sequence[Node]], *, together: bool
    ) -> tuple[list[torch.Tensor] | None, str, bool]:
        """Return what the device computes; else None, why it does not, and if that is a fault."""
        reason = self._attempt.off or self._device.gone
        if reason:
            return None, reason, False
        try:
            reason = find_missing_type(self._device, [node for frame in frames for node in frame])
            if reason:
                return None, reason, False
            found = _on_device(self._device, frames, together=together, is_strict=self._is_strict)
        except Exception as error:  # of a framework: whatever it is, the originals can
            if self._is_strict:
                raise
            if isinstance(error, OutOfMemoryError):
                free_caches(error)
            is_fault = not isinstance(error, RefusedCallError)
            return None, f"{type(error).__name__}: {error}", is_fault
        self._attempt.succeeded()
        if self._attempt.is_due() and not self._is_right(frames, found, together=together):
            return None, self._attempt.off, False
        return found, "", False

    def _is_right(
        self, frames: Sequence[Sequence[Node]], found: list[torch.Tensor], *, together: bool
    ) -> bool:
        start = time.perf_counter()
        expected = _by_originals(frames, together=together)
        self._host_s = time.perf_counter() - start
        if all(
            within_tolerance(self._accept, ours, theirs)
            for ours, theirs in zip(found, expected, strict=True)
        ):
            return True
        reason = f"a batch was not {self._accept}, so the device is not used any more"
        self._attempt.switch_off(reason)
        return False

    def _on_host(self, frames: Sequence[Sequence[Node]], *, together: bool) -> list[torch.Tensor]:
        """Return what the originals compute, on the device if that takes it."""
        found = _by_originals(frames, together=together)
        if self._stays or self._device.gone or self._device.torch_device is None:
            return found
        try:
            missing = missing_types(self._device)
            return [
                each
                if lacks(missing, str(each.dtype).removeprefix("torch."))
                else each.to(self._device.torch_device)
                for each in found
            ]
        except Exception as error:
            if self._is_strict:
                raise
            # Whatever it is, the program can go on with what is on the host.
            why = f"{type(error).__name__}: {error}"
            self._stays = f"{self._device.name} takes no tensors, so they stay on the host: {why}"
            reason = self.tally.bounded(self._stays)
            self._attempt.record(reason)
            return found


def _on_device(
    device: Device, frames: Sequence[Sequence[Node]], *, together: bool, is_strict: bool
) -> list[torch.Tensor]:
    groups = execution.compute_frames(device, frames, is_strict=is_strict)
    if not together:
        return [found for (found,) in execution.regroup_rows(len(frames), groups)]
    if len(groups) == 1:
        return [column.contiguous() for column in groups[0][1]]  # as stacked samples are
    rows = execution.regroup_rows(len(frames), groups)
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def _by_originals(frames: Sequence[Sequence[Node]], *, together: bool) -> list[torch.Tensor]:
    # Copies: what is only a part of a worker's memory is there until that is used again.
    rows = [
        [torch.from_numpy(np.array(compute_on_host(node))) for node in frame] for frame in frames
    ]
    if not together:
        return [found for (found,) in rows]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def _given(frames: Sequence[Sequence[Node]]) -> int:
    """Return the bytes of the arrays that values are computed from."""
    used = (node.host for frame in frames for node in find_sources(frame))
    return sum(host.nbytes for host in used if host is not None)
