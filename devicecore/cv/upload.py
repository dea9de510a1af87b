"""Uploads host images to a GPU on a stream of their own, so that copies overlap with kernels."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from devicecore.fork import rearm_after_fork
from devicecore.transfer.pinned_ring import abandon

if TYPE_CHECKING:
    from collections.abc import Iterator

# One is filled while others are on their way, or are read.
_SLOTS = 4


class _PinnedSlot:
    """Memory for one image on the GPU, and beside it on the host, that is used again and again.

    Attributes:
        on_gpu: The bytes on the GPU.
        on_host: Page-locked bytes on the host; made when an image needs them.
        copied: Set when the last copy into `on_gpu` is done.
        used: Set when the kernels that read `on_gpu` are done.
    """

    __slots__ = ("copied", "on_gpu", "on_host", "used", "views")

    def __init__(self, size: int, device: torch.device) -> None:
        self.on_gpu: torch.Tensor = torch.empty(size, dtype=torch.uint8, device=device)
        self.on_host: torch.Tensor | None = None
        event: Any = torch.cuda.Event
        self.copied: Any = event()
        self.used: Any = event()
        # The memory may be that of something that kernels still read, on this stream.
        self.used.record(torch.cuda.current_stream(device))
        self.views: dict[torch.Size, torch.Tensor] = {}

    def view(self, image: torch.Tensor) -> torch.Tensor:
        """Return the memory on the GPU in the shape of *image*."""
        found = self.views.get(image.shape)
        if found is None:
            found = self.views[image.shape] = self.on_gpu[: image.nbytes].view(image.shape)
        return found

    def staged(self, image: torch.Tensor) -> torch.Tensor:
        """Return a page-locked copy of *image*."""
        if self.on_host is None:
            self.on_host = torch.empty(
                self.on_gpu.shape, dtype=torch.uint8, device="cpu", pin_memory=True
            )
        else:
            self.copied.synchronize()  # what was in there before
        return self.on_host[: image.nbytes].view(image.shape).copy_(image)


class Uploader:
    """Copies of images of bytes to one GPU.

    Args:
        device: The GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._idle: deque[_PinnedSlot] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, image: torch.Tensor) -> Iterator[torch.Tensor]:
        """Lend *image* on the GPU to whatever the block queues on the current stream.

        A page-locked image is copied from where it lies, and must stay as it is until the copy is
        done; others go through page-locked memory, and may be changed at once.
        """
        current = torch.cuda.current_stream(self._device)
        slot = self._take(image.nbytes)
        try:
            source = image if image.is_pinned() else slot.staged(image)
            # Set by hand: the context manager takes as long as the copy's launch.
            torch.cuda.set_stream(self._stream)
            try:
                self._stream.wait_event(slot.used)
                there = slot.view(image).copy_(source, non_blocking=True)
                slot.copied.record(self._stream)
            finally:
                torch.cuda.set_stream(current)
            current.wait_event(slot.copied)
            yield there
            slot.used.record(current)
        finally:
            with self._lock:
                self._idle.append(slot)

    def _take(self, size: int) -> _PinnedSlot:
        """Return the slot that has been idle longest, if there are as many as there shall be."""
        with self._lock:
            slot = self._idle.popleft() if len(self._idle) >= _SLOTS else None
        if slot is not None and slot.on_gpu.numel() >= size:
            return slot
        return _PinnedSlot(size, self._device)


class _Uploaders:
    """One uploader for each GPU, made on first use."""

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
    """Return the uploader of a GPU."""
    return _uploaders.of(device)
