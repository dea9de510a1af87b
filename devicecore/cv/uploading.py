"""Copies of host images to a card, on a stream of their own, so that they overlap with kernels."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import torch

from devicecore.fork import rearm_after_fork
from devicecore.transfer.pinned_ring import abandon

# One is filled while others are on their way.
_BUFFERS = 3


class Uploader:
    """Copies to one card.

    Args:
        device: The card.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._ring: deque[tuple[torch.Tensor, Any]] = deque()
        self._lock = threading.Lock()

    def upload(self, image: torch.Tensor) -> torch.Tensor:
        """Return *image* on the card, ready for whatever is queued on the current stream next.

        A page-locked image is copied from where it lies, and must stay as it is until the copy is
        done; others go through a ring of page-locked buffers, and may be changed at once.
        """
        current = torch.cuda.current_stream(self._device)
        # Set by hand: the context manager takes as long as the copy's launch.
        torch.cuda.set_stream(self._stream)
        try:
            if image.is_pinned():
                there = image.to(self._device, non_blocking=True)
            else:
                there = self._through_ring(image)
            copied = self._stream.record_event()
        finally:
            torch.cuda.set_stream(current)
        current.wait_event(copied)
        there.record_stream(current)
        return there

    def _through_ring(self, image: torch.Tensor) -> torch.Tensor:
        with self._lock:
            buffer, done = self._ring.popleft() if len(self._ring) >= _BUFFERS else (None, None)
        if done is not None:
            done.synchronize()
        if buffer is None or buffer.numel() < image.nbytes:
            buffer = torch.empty(image.nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
        staged = buffer[: image.nbytes].view(image.dtype).view(image.shape)
        staged.copy_(image)
        there = staged.to(self._device, non_blocking=True)
        with self._lock:
            self._ring.append((buffer, self._stream.record_event()))
        return there


class _Uploaders:
    """One uploader for each card, made on first use."""

    def __init__(self) -> None:
        self._made: dict[torch.device, Uploader] = {}
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def of(self, device: torch.device) -> Uploader:
        """Return the uploader of *device*."""
        with self._lock:
            if device not in self._made:
                self._made[device] = Uploader(device)
            return self._made[device]

    def after_fork(self) -> None:
        """Forget streams and buffers in a forked child, which has no driver."""
        self._lock = threading.Lock()
        abandon(self._made)
        self._made = {}


_uploaders = _Uploaders()


def uploader_of(device: torch.device) -> Uploader:
    """Return the uploader of a card."""
    return _uploaders.of(device)
