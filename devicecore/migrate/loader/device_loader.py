"""`DeviceLoader`: a DataLoader whose workers decode and whose device computes."""

from __future__ import annotations

import uuid
import weakref
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader

from devicecore.errors import PlanError
from devicecore.migrate.loader.arena import Borrowed
from devicecore.migrate.loader.batches import Batches
from devicecore.migrate.loader.datasets import SampleLoading, WorkerInit, record_dataset
from devicecore.migrate.loader.loader_report import LoaderTallies
from devicecore.migrate.loader.placeholders import Samples, replace_placeholders
from devicecore.migrate.loader.shared_arrays import SharedArrays
from devicecore.migrate.loader.shm_blocks import SHM_BLOCKS, Loan
from devicecore.migrate.plan.optimization_plan import OptimizationPlan
from devicecore.migrate.recording.nodes import find_sources
from devicecore.migrate.recording.snapshots import copy_array, pin_array, share_array
from devicecore.resolution import resolve

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from devicecore.device import Device
    from devicecore.migrate.calls.report import MigrationReport
    from devicecore.migrate.recording.nodes import Node
    from devicecore.migrate.strategies.registry import StrategyRegistry

# Batches that are on their way while the program has another one.
_AHEAD = 1


class DeviceLoader:
    """A ``torch.utils.data.DataLoader`` whose device does what a plan names.

    The calls and the frames that the plan names are recorded while workers load samples, and
    computed on the device for whole batches, in the process that has the loader. What they return
    is, in a batch, a tensor on the device with the values that the program itself would have got;
    all else is what torch's loader gives. The next batch is on its way while the program has one.

    Args:
        dataset: The program's own, indexed or iterable.
        plan: An `OptimizationPlan`, or what its ``load`` takes: a file, or a mapping.
        device: Where it is computed, as `device_scope` takes it; None for the one that
            the plan names.
        registry: How functions are computed; None for `default_strategies`.
        strict: Whether an error takes the place of the host's answer.
        verify: Of how many batches one is also computed by the original functions; 0 for none.
        immutable: Whether the program promises that arrays which its frames are given do not change
            while batches are loaded. They are read where they lie then, and not copied first; from
            page-locked memory a GPU does that by itself.
        collate_fn: What puts samples together, with tensors on the device in them, in this process;
            None for torch's own.
        options: What else torch's loader takes, such as ``batch_size`` and ``num_workers``.

    Raises:
        PlanError: The plan is none, or names several devices.
        ValueError: There is no batch size.
        TypeError: The dataset is one of torch's DataPipes.
        NotLiveError: The device does not work.

    Examples:
        >>> import cv2, numpy as np
        >>> from devicecore.migrate import DeviceLoader
        >>> class Pictures:
        ...     def __len__(self):
        ...         return 4
        ...
        ...     def __getitem__(self, index):
        ...         return cv2.resize(np.full((64, 64, 3), index, np.uint8), (32, 32)), index
        >>> plan = {"cv2.resize": {"device": "cpu", "kernel": "torch"}}
        >>> for images, labels in DeviceLoader(Pictures(), plan, batch_size=2):
        ...     print(images.shape, labels)
        torch.Size([2, 32, 32, 3]) tensor([0, 1])
        torch.Size([2, 32, 32, 3]) tensor([2, 3])
    """

    def __init__(
        self,
        dataset: Any,
        plan: OptimizationPlan | str | os.PathLike[str] | Mapping[str, Any],
        *,
        device: str | Device | Any | None = None,
        registry: StrategyRegistry | None = None,
        strict: bool = False,
        verify: int = 0,
        immutable: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **options: Any,
    ) -> None:
        if options.get("batch_size", 1) is None and "batch_sampler" not in options:
            msg = "batch_size is None, and what is computed here are batches; give it a number"
            raise ValueError(msg)
        self.plan: OptimizationPlan = (
            plan if isinstance(plan, OptimizationPlan) else OptimizationPlan.load(plan)
        )
        self.dataset: Any = dataset
        asked = _named(self.plan) if device is None else device
        self.device: Device = resolve(asked, framework="torch").device
        self._is_strict = strict
        self._collate_fn = collate_fn
        self._batches = Batches(self.device, self.plan, is_strict=strict, verify=verify)
        keep = share_array if immutable else pin_array if self._is_cuda else copy_array
        shared = SharedArrays(dataset, is_immutable=immutable)
        self._loading = SampleLoading(
            self.plan, registry, collate_fn, shared=shared, keep=keep, is_strict=strict
        )
        self._tallies = LoaderTallies(self.plan, self._loading, self._batches.tally)
        # Of workers that stay until nobody has the loader any more.
        weakref.finalize(self, _forget, self._loading.owner, self._gpu).atexit = False
        options["worker_init_fn"] = WorkerInit(self._loading, options.get("worker_init_fn"))
        self._loader: DataLoader[Any] = DataLoader(
            record_dataset(dataset, self._loading), collate_fn=self._loading.collate, **options
        )

    def __len__(self) -> int:
        """Return how many batches there are."""
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        """Return what torch's loader has, such as its ``batch_size`` and its ``sampler``."""
        if name.startswith("_"):  # such as what copies ask for before there is a loader
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        """Yield batches; what is on the device is ordered on the current stream.

        Raises:
            RefusedCallError: It is strict, and something was not computed on the device.
        """
        read: deque[tuple[Any, set[Loan]]] = deque()
        ahead: deque[Any] = deque()
        is_any = False
        batches: Any = None
        with self._recording():
            try:
                batches = iter(self._loader)
                for batch, rows, matched in batches:
                    is_any = True
                    self._tallies.count(rows, matched)
                    computed, loans = self._computed(batch)
                    ahead.append(computed)
                    read.append((self._event(), loans))
                    while read and (read[0][0] is None or read[0][0].query()):
                        _end(read.popleft()[1])
                    if len(ahead) > _AHEAD:
                        yield ahead.popleft()
            except Exception as error:  # of the program's dataset, which may raise anything
                self._count_error(error, getattr(batches, "_workers", ()))
                del batches  # so that its workers end
                yield from ahead  # what came before the error
                raise
            finally:
                for event, loans in read:  # workers that stay would never use them again
                    event.synchronize()
                    _end(loans)
            yield from ahead
        if is_any and not self._batches.tally.row().calls:
            self._tallies.say_that_nothing_is_recorded(self.device.name, is_strict=self._is_strict)

    def report(self) -> MigrationReport:
        """Return what became so far of the batches, of the samples, and of the calls in them.

        Calls that were migrated are those that were recorded: the batches have them then. Samples
        that the dataset could not load, or that could not be put together, and workers that have
        died are counted with the reason.
        """
        return self._tallies.report()

    def _count_error(self, error: Exception, workers: Iterable[Any]) -> None:
        if self._loader.num_workers:
            self._tallies.worker_failed(error, workers)
        else:  # workers have told of it
            recorder = self._loading.recorder
            self._tallies.count(recorder.taken(), recorder.matched)

    @property
    def _gpu(self) -> str | None:
        return self.device.torch_device if self._is_cuda else None

    @property
    def _is_cuda(self) -> bool:
        return self.device.device_type == "CUDA"

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Record samples in this process, if it has no workers that do so."""
        self._tallies.begin()
        if not self._loader.num_workers:
            with self._loading.recorder:
                yield
            return
        self._loading.recorder.warn_for_workers()
        if self._loader.persistent_workers:
            yield
            return
        owner = self._loading.owner = uuid.uuid4().hex
        try:
            yield
        finally:
            _forget(owner, self._gpu)

    def _event(self) -> Any:
        """Return what says when all that was read for a batch is not needed any more."""
        if not self._is_cuda:
            return None
        cuda: Any = torch.cuda
        event = cuda.Event()
        event.record(torch.cuda.current_stream(torch.device(self.device.torch_device or "cuda")))
        return event

    def _computed(self, batch: Any) -> tuple[Any, set[Loan]]:
        """Return a batch with tensors in it, and the shared memory that is read for them."""
        is_collated = not isinstance(batch, Samples)
        leaves: list[Any] = []
        replace_placeholders(batch if is_collated else batch.samples, leaves.append)
        if is_collated:
            frames = list(zip(*(leaf.nodes for leaf in leaves), strict=True))
        else:
            frames = [(leaf.node,) for leaf in leaves]
        loans = self._loans(frames)
        found = iter(self._batches.computed(frames, together=is_collated) if frames else ())
        if is_collated:
            return replace_placeholders(batch, lambda leaf: _typed(next(found), leaf.dtype)), loans
        assert self._collate_fn is not None
        samples = replace_placeholders(batch.samples, lambda _: next(found))
        try:
            return self._collate_fn(samples), loans
        except Exception as error:  # of the program's, which may raise anything
            self._tallies.collation_failed(self._collate_fn, error)
            raise

    def _loans(self, frames: Sequence[Sequence[Node]]) -> set[Loan]:
        """Return the shared memory that values are in; a GPU may copy from it by itself."""
        if not self._loader.num_workers:
            return set()
        nodes = (node for frame in frames for node in find_sources(frame))
        loans = {node.loan for node in nodes if isinstance(node, Borrowed)}
        for loan in loans if self._is_cuda else ():
            if not loan.block.is_locked:
                loan.block.is_locked = True
                # Where that fails it is copied once more instead.
                memory = loan.block.memory
                _runtime().cudaHostRegister(memory.data_ptr(), memory.nbytes, 0)
        return loans


def _typed(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return tensor if dtype is None else tensor.to(dtype)


def _end(loans: set[Loan]) -> None:
    for loan in loans:
        loan.end()


def _forget(owner: str, device: str | None) -> None:
    """Forget shared memory of workers that have ended, which a GPU may have read."""
    locked = [block for block in SHM_BLOCKS.forget(owner) if block.is_locked]
    if locked:
        torch.cuda.synchronize(device)
        for block in locked:
            _runtime().cudaHostUnregister(block.memory.data_ptr())


def _runtime() -> Any:
    cuda: Any = torch.cuda
    return cuda.cudart()


def _named(plan: OptimizationPlan) -> str:
    """Return the device that a plan names.

    Raises:
        PlanError: It names several, or none.
    """
    devices = sorted({entry.device for entry in plan.entries if not entry.is_original})
    if len(devices) != 1:
        reason = f"a loader has one device, and the plan has {', '.join(devices) or 'none'}"
        raise PlanError("", reason, "give DeviceLoader a device", plan.source)
    return devices[0]
