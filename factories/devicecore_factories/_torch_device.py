"""`TorchDevice`: a GPU that torch drives."""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from devicecore.device import Device
from devicecore.ledger import default_ledger
from devicecore.optional import require
from devicecore_factories import _faults
from devicecore_factories._backend import facts_of
from devicecore_factories._completion import Completion, Queued

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Self

    from devicecore.device_factory import DeviceOptions
    from devicecore.errors import DeviceError
    from devicecore.liveness import PhysicalDevice
    from devicecore.ort import SessionSpec

# A thread that waits for these lets its CPU go; the other backends wait that way by themselves.
_BLOCKING = {"cuda": {"blocking": True}}
# XPU has these, and `mem_get_info`, only since torch 2.6.
_MEMORY = {"allocated": "memory_allocated", "reserved": "memory_reserved"}
# How long a program that ends waits for a GPU that may hang.
_PATIENCE_S = 30.0


class TorchDevice(Device):
    """A GPU that torch drives; torch is imported, and the GPU opened, at the first use.

    `compute` returns when the work is queued on the caller's current stream. `compute_async` queues
    it there as well, in the caller's thread; one thread for each device then waits for the GPU.

    Args:
        name: See `Device`, as the rest.
        torch_device: torch's name of the GPU, such as ``"cuda:1"``.
        cap: The share of the GPU's memory that torch may take, None for all of it.
        facts: The further arguments of `Device`.
    """

    def __init__(
        self, name: str, *, torch_device: str, cap: float | None = None, **facts: Any
    ) -> None:
        self._place = torch_device
        self._kind, _, ordinal = torch_device.partition(":")
        self._index = int(ordinal or 0)
        self._cap = cap
        self._completion: Completion | None = None
        self._farewell: weakref.finalize[..., TorchDevice] | None = None
        super().__init__(name, torch_device=torch_device, **facts)

    @classmethod
    def on(
        cls,
        gpu: PhysicalDevice,
        name: str,
        options: DeviceOptions,
        torch_device: str,
        session: SessionSpec | None = None,
    ) -> Self:
        """Return the device on *gpu*, which torch calls *torch_device*."""
        limit = options.memory_limit
        cap = min(1.0, limit / gpu.memory_bytes) if limit and gpu.memory_bytes else None
        facts = facts_of(gpu, options)
        return cls(name, torch_device=torch_device, cap=cap, session=session, **facts)

    # --- running kernels ----------------------------------------------------------------------

    def _choose(self, kernel: Any) -> Callable[..., Any]:
        function = super()._choose(kernel)
        self._apply_cap()  # before the first kernel can take memory
        return function

    def _start(self, future: Future[Any], call: Callable[[], Any]) -> None:
        future.set_running_or_notify_cancel()  # it is submitted here and now
        try:
            result = call()
            mark = self._translated(self._mark) if self._is_open else None
        except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
            future.set_exception(error)
            return
        if mark is None:  # a kernel that does not use torch, and so has queued nothing
            future.set_result(result)
        else:
            self._waiter().add(Queued(future, result, mark, self._late))

    def _mark(self) -> Any:
        """Return an event after everything on the caller's current stream."""
        backend = self._backend
        mark = backend.Event(**_BLOCKING.get(self._kind, {}))
        if self._kind == "mps":  # it has one stream
            mark.record()
        else:
            mark.record(backend.current_stream(self._place))
        return mark

    def _late(self, error: Exception) -> DeviceError:
        """Return the error of work that failed after it was queued: nothing can follow it."""
        return self.device_error(error) or _faults.lost(self, error)

    def _waiter(self) -> Completion:
        with self._lock:
            if self._completion is None:
                prepare = (
                    partial(self._backend.set_device, self._index)
                    if self._kind != "mps"
                    else lambda: None
                )
                name = f"{self.device_type}:{self.parsed_name.index}"
                self._completion = Completion(name, prepare)
                # At the end of the program too: a thread that is inside the driver then aborts it.
                self._farewell = weakref.finalize(self, self._completion.close, _PATIENCE_S)
            return self._completion

    def device_error(self, error: Exception) -> DeviceError | None:
        """Return what *error* means for the GPU; a lost one takes all its devices along."""
        return _faults.device_error(self, error)

    # --- memory and state ---------------------------------------------------------------------

    @property
    def _backend(self) -> Any:
        return getattr(require("torch", extra="torch"), self._kind)

    @property
    def _is_open(self) -> bool:
        """Whether torch may have opened the GPU in this process."""
        if sys.modules.get("torch") is None:
            return False
        return self._kind == "mps" or bool(self._backend.is_initialized())

    def _apply_cap(self) -> None:
        cap, self._cap = self._cap, None
        if cap is None:
            return
        limit = getattr(self._backend, "set_per_process_memory_fraction", None)
        if limit is None:  # XPU has it since torch 2.10
            reason = f"this torch limits no memory of {self._kind}"
            default_ledger().record("memory_limit", self.name, self.name, reason)
            return
        limit(cap, *(() if self._kind == "mps" else (self._index,)))

    def allocate(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a new tensor on the GPU, unset.

        Raises:
            TypeError: torch has no such dtype.
            OutOfMemoryError: The GPU has too little memory left.
            DeviceGoneError: The device is gone.
        """
        super().refresh_status()
        self._apply_cap()
        torch = require("torch", extra="torch")
        kind = getattr(torch, dtype, None)
        if not isinstance(kind, torch.dtype):
            msg = f"torch has no dtype {dtype!r}"
            raise TypeError(msg)
        return self._translated(lambda: torch.empty(tuple(shape), dtype=kind, device=self._place))

    def memory_stats(self) -> dict[str, int]:
        """Return ``limit`` and, once the GPU is open, what is allocated and free, in bytes."""
        stats = super().memory_stats()
        if not self._is_open:
            return stats
        backend, where = self._backend, self._place
        if self._kind == "mps":
            return stats | {
                "allocated": backend.current_allocated_memory(),
                "reserved": backend.driver_allocated_memory(),
            }
        for name, function in _MEMORY.items():
            if (ask := getattr(backend, function, None)) is not None:
                stats[name] = ask(where)
        if (ask := getattr(backend, "mem_get_info", None)) is not None:
            stats["free"], stats["total"] = ask(where)
        return stats

    def synchronize(self) -> None:
        """Wait until the GPU has finished everything; on one that is not open nothing waits."""
        super().synchronize()
        if self._is_open:
            where = () if self._kind == "mps" else (self._place,)
            self._translated(lambda: self._backend.synchronize(*where))

    def refresh_status(self) -> None:
        """Look whether the GPU still answers.

        Raises:
            DeviceGoneError: It does not.
        """
        super().refresh_status()
        if self._is_open and self._kind != "mps":
            self._translated(lambda: self._backend.current_stream(self._place).query())

    def _translated(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            known = self.device_error(error)
            if known is None:
                raise
            raise known from error

    # --- its end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Let what is queued finish, and drop all state; closing twice is harmless."""
        self.retire("it was closed")
        with self._lock:
            completion, self._completion = self._completion, None
        if completion is not None:
            completion.close()
        super().close()

    def was_opened_before_fork(self) -> bool:
        """Return whether the parent had opened the GPU, with torch or with ONNX Runtime."""
        if self.session is not None and self._resources is not None:
            return True
        imported = sys.modules.get("torch") is not None
        return imported and bool(self._backend._is_in_bad_fork())  # noqa: SLF001 - the only way

    def after_fork(self) -> None:
        """Start anew in a forked child, or retire; the waiting thread stayed in the parent."""
        if self._farewell is not None:
            self._farewell.detach()
        self._completion = self._farewell = None
        super().after_fork()
