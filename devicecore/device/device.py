"""`Device`: something that runs kernels."""

from __future__ import annotations

import threading
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NoReturn

from devicecore.config import effective_cpu_count
from devicecore.device.attributes import DeviceAttributes, DeviceLocality, as_known
from devicecore.device.choices import DEFAULT_SESSION, check_can_compute, function_for
from devicecore.device.lost_gpus import gpus_of_process
from devicecore.device.turns import Turns
from devicecore.errors import (
    DeviceGoneError,
    InvalidDeviceNameError,
    NotLiveError,
    OutOfMemoryError,
)
from devicecore.fork import rearm_after_fork
from devicecore.kernels import Kernel, default_kernels
from devicecore.names import DeviceName, canonical_torch_device
from devicecore.optional import require
from devicecore.resources import OpSegment, ResourceMgr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from devicecore.device.pool import TaskPool
    from devicecore.errors import DeviceError
    from devicecore.kernels import KernelRegistry
    from devicecore.ort import SessionSpec


class Device:
    """Something that runs kernels: a CPU, a GPU, or a runtime that drives one.

    Args:
        name: Its name; type and index must be set.
        device_class: ``"CPU"``, ``"GPU"`` or ``"NPU"``.
        description: One line for a person, such as ``"NVIDIA H200"``.
        physical_id: The UUID or PCI id of the GPU; devices on one GPU share it.
        memory_limit: Memory that may be used on it, in bytes; 0 where unknown.
        locality: Where it sits in the machine.
        frameworks: What it is live for: ``"torch"``, ``"onnx"``.
        torch_device: Its name for torch, such as ``"cuda:1"``, or None; kept as tensors say it.
        memory: The name of the device in whose memory its arguments lie, if that is another one.
        session: How ONNX Runtime opens a session on it, or None.
        threads: How many asynchronous calls may run at once; None for one per usable CPU. A call
            that waits, by a thread of its own, for one that is queued behind it needs one more.
        kernels: Kernels of its own, before those of *registry*.
        registry: Where it finds kernels; None for the default registry.
        priority: Its factory's priority; None for that of its type.
        is_local: Whether it is in this process.

    Raises:
        InvalidDeviceNameError: *name* lacks a type or an index.

    Examples:
        >>> npu = Device("/device:NPU:0", device_class="NPU")
        >>> npu.compute(lambda device, x: (str(device.parsed_name.local), x + 1), 41)
        ('/device:NPU:0', 42)
    """

    # Whether `compute` of a subclass reaches devices of other processes.
    computes_elsewhere = False

    def __init__(
        self,
        name: str | DeviceName,
        *,
        device_class: str = "CPU",
        description: str = "",
        physical_id: str | None = None,
        memory_limit: int = 0,
        locality: DeviceLocality | None = None,
        frameworks: Iterable[str] = (),
        torch_device: str | None = None,
        memory: DeviceName | None = None,
        session: SessionSpec | None = None,
        threads: int | None = None,
        kernels: Iterable[Kernel] = (),
        registry: KernelRegistry | None = None,
        priority: int | None = None,
        is_local: bool = True,
    ) -> None:
        parsed = name if isinstance(name, DeviceName) else DeviceName.parse(name)
        if parsed.device_type is None or parsed.index is None:
            raise InvalidDeviceNameError(str(name), 0, "a device has a type and an index")
        self.parsed_name = parsed
        self.name: str = str(parsed)
        self.device_type: str = parsed.device_type
        self.physical_id = physical_id
        place = locality or DeviceLocality()
        self.attributes: DeviceAttributes = DeviceAttributes(
            self.name, self.device_type, memory_limit, place, description=description
        )
        known_class, known_frameworks = as_known(device_class, frameworks)
        self.device_class: str = known_class
        self.frameworks: frozenset[str] = known_frameworks
        self.torch_device = torch_device and canonical_torch_device(torch_device)
        self.memory = memory
        self.session = session
        self.priority = priority
        self.is_local = is_local
        self.kernels: tuple[Kernel, ...] = tuple(kernels)
        # Set by the registry: called with the first error that contradicts its evidence.
        self.on_doubt: Callable[[NotLiveError], object] | None = None
        self._memory_device: Device | None = None
        self.kernel_registry: KernelRegistry = registry or default_kernels()
        self._threads = threads
        self._choices: dict[Any, Callable[..., Any] | None] = {}
        self._gone = ""
        self._pool: TaskPool | None = None
        self._resources: ResourceMgr | None = None
        self._segment: OpSegment | None = None
        self._turns = Turns()
        self._lock = threading.Lock()
        rearm_after_fork(self)
        self._gpu = None if physical_id is None else gpus_of_process().join(self, physical_id)

    @property
    def label(self) -> str:
        """Its name and what it is, for a person."""
        short = f"{self.device_type}:{self.parsed_name.index}"
        return f"{short} ({self.attributes.description})" if self.attributes.description else short

    @property
    def memory_device(self) -> Device:
        """The device in whose memory its arguments lie; itself, unless a manager links them."""
        return self._memory_device or self

    @property
    def reads_host_memory(self) -> bool:
        """Whether its kernels take what lies in the host's memory."""
        return self.memory_device.device_type == "CPU"

    @property
    def resource_mgr(self) -> ResourceMgr:
        """State that its kernels keep between calls."""
        if self._resources is None:
            with self._lock:
                if self._resources is None:
                    self._resources = ResourceMgr()
        return self._resources

    @property
    def op_segment(self) -> OpSegment:
        """Its stateful kernels, by session."""
        if self._segment is None:
            with self._lock:
                if self._segment is None:
                    segment = OpSegment()
                    segment.add_hold(DEFAULT_SESSION)
                    self._segment = segment
        return self._segment

    def compute(
        self, kernel: str | Kernel | Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Run *kernel* here, on arguments as they are; never falls back and moves nothing.

        Args:
            kernel: The name of an operation, a `Kernel`, or any callable, such as an `OnnxModel`,
                which is called as ``kernel(device, *args, **kwargs)``.
            args: The kernel's arguments, in memory that this device reads.
            kwargs: More of them.

        Returns:
            What the kernel returns. A GPU's result may still be on its way, ordered on the caller's
            current stream.

        Raises:
            NoKernelError: No kernel fits this device and these arguments.
            DeviceGoneError: The device was closed, removed, lost, or opened before a fork.
            OutOfMemoryError: The device has too little memory left.
        """
        try:
            function = self._choices.get(kernel)
        except TypeError:  # a callable that cannot be a key
            function = None
        try:
            if function is None:
                function = self._choose(kernel)
            return function(self, *args, **kwargs)
        except Exception as error:
            known = self.device_error(error)
            self._doubt(known or error)
            if known is None:
                raise
            raise known from error

    def compute_async(
        self,
        kernel: str | Kernel | Callable[..., Any],
        /,
        *args: Any,
        done: Callable[[Future[Any]], object] | None = None,
        **kwargs: Any,
    ) -> Future[Any]:
        """Run *kernel* as `compute` does, without waiting for it.

        It runs in a copy of the caller's context; called from a thread that runs such a call, it
        runs at once. Every error, also that of a device that is gone, arrives in the future.

        Args:
            kernel: See `compute`.
            args: See `compute`.
            done: Called with the future exactly once: after the result, an error, a cancellation,
                or the closing of the device.
            kwargs: More arguments of the kernel.

        Returns:
            The future result. It can be cancelled until the call has started.
        """
        from concurrent.futures import Future  # late: futures import logging

        future: Future[Any] = Future()
        if done is not None:
            future.add_done_callback(done)
        context = copy_context()
        self._start(future, lambda: context.run(self.compute, kernel, *args, **kwargs))
        return future

    def _start(self, future: Future[Any], call: Callable[[], Any]) -> None:
        """Start *call* on whatever this device waits with, a pool of threads here."""
        from devicecore.device.pool import TaskPool

        with self._lock:
            if self._pool is None and not self._gone:
                threads = self._threads or effective_cpu_count()
                self._pool = TaskPool(threads, f"{self.device_type}:{self.parsed_name.index}")
            pool = self._pool
        if pool is not None:
            with suppress(RuntimeError):  # closed in between
                pool.submit(call, future)
                return
        if future.set_running_or_notify_cancel():
            future.set_exception(DeviceGoneError(self.name, self._gone))

    def device_error(self, error: Exception) -> DeviceError | None:
        """Return what *error*, raised by a kernel, means in our terms, or None if it is not ours.

        Subclasses know how their framework says "out of memory" and "the GPU is lost".
        """
        del error
        return None

    def _doubt(self, error: Exception) -> None:
        """Tell whoever made the device, once, that it is not live after all."""
        if isinstance(error, NotLiveError) and self.on_doubt is not None:
            doubt, self.on_doubt = self.on_doubt, None
            doubt(error)

    def _choose(self, kernel: str | Kernel | Callable[..., Any]) -> Callable[..., Any]:
        check_can_compute(self)
        if callable(kernel) and not isinstance(kernel, Kernel):
            return kernel  # there may be any number of these, so none is kept
        registry, generation = self.kernel_registry, self.kernel_registry.generation
        function = function_for(self, kernel)
        registry.watch(self)
        with self._lock:
            # A change meanwhile has cleared the choices; this one then serves this call only.
            if generation == registry.generation and not self._gone:
                self._choices[kernel] = function
        return function

    def turn_of(self, kernel: Kernel) -> AbstractContextManager[object]:
        """Return what lets one call of *kernel* run here at a time; a kernel may call itself."""
        return self._turns.of(kernel)

    def kernels_changed(self) -> None:
        """Forget which kernel was chosen for which operation."""
        with self._lock:
            if not self._gone:
                self._choices = {}

    def allocate(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a new array of that shape and dtype in `memory_device`'s memory, unset.

        Args:
            shape: Its dimensions.
            dtype: A numpy dtype's name, such as ``"float32"``.

        Returns:
            A numpy array on the host; a torch tensor where torch reaches the memory.

        Raises:
            OutOfMemoryError: There is too little memory left.
            DeviceGoneError: The device is gone.
            MissingDependencyError: numpy is not installed.
        """
        if self.memory_device is not self:
            return self.memory_device.allocate(shape, dtype)
        self.refresh_status()
        numpy = require("numpy", extra="onnx")
        try:
            return numpy.empty(tuple(shape), dtype)
        except MemoryError as error:
            raise OutOfMemoryError(self.name, str(error)) from error

    def memory_stats(self) -> dict[str, int]:
        """Return what is known of its memory, in bytes; ``limit`` is always there."""
        return {"limit": self.attributes.memory_limit}

    def synchronize(self) -> None:
        """Wait until everything queued so far is done.

        Raises:
            DeviceGoneError: The device is gone.
        """
        self.refresh_status()

    def refresh_status(self) -> None:
        """Look whether the device still works.

        Raises:
            DeviceGoneError: It does not.
        """
        if self._gone:
            raise DeviceGoneError(self.name, self._gone)

    @property
    def gone(self) -> str:
        """Why it refuses everything; empty as long as it does not."""
        return self._gone

    def retire(self, reason: str) -> None:
        """Refuse everything from now on; calls in flight finish."""
        with self._lock:
            if not self._gone:
                self._gone = reason
                self._choices = {}

    def lose(self, reason: str) -> None:
        """Retire this device and all others on its GPU, since the GPU does not answer."""
        self.retire(reason)
        if self.physical_id is not None:
            gpus_of_process().lose(self.physical_id, reason)

    def close(self) -> None:
        """Cancel what waits, let asynchronous calls that run finish, and drop all state.

        Closing twice is harmless. What `compute` is running in other threads goes on. Calls that
        may wait for this one, as this is inside of another or they compute nothing for half a
        minute, are not waited for: the state is dropped when they are done.
        """
        self.retire("it was closed")
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is None:
            self._drop_state()
        else:
            pool.close(self._drop_state)

    def _drop_state(self) -> None:
        if self._segment is not None:
            self._segment.clear()
        if self._resources is not None:
            self._resources.clear()

    def extend(self, other: Device) -> None:
        """Serve also what *other* serves, a device of the same name that was made later.

        A device that was asked for by one framework may turn out to be live for a second one.
        """
        self.frameworks |= other.frameworks
        self.torch_device = self.torch_device or other.torch_device
        self.session = self.session or other.session
        self.kernels_changed()

    def link_memory(self, device: Device | None) -> None:
        """Say in whose memory the arguments lie; the manager does that."""
        self._memory_device = device

    def was_opened_before_fork(self) -> bool:
        """Return, in a forked child, whether the parent had opened a driver's context."""
        return False

    def after_fork(self) -> None:
        """Start anew in a forked child, or retire if a driver's context was inherited."""
        self._lock = threading.Lock()
        self._turns = Turns()
        self._pool = None
        if self.was_opened_before_fork():
            self.retire("it was opened before this process was forked")
        self.kernels_changed()

    def __reduce__(self) -> NoReturn:
        msg = f"{self.name} stays in its process; send its parsed_name and look it up there"
        raise TypeError(msg)

    def __repr__(self) -> str:
        state = f", gone: {self._gone}" if self._gone else ""
        return f"<{type(self).__name__} {self.name}{state}>"
