"""`DeviceLoader`: a loader whose workers decode, and whose device does what a plan names."""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from devicecore.cv.plan import PROMISES
from devicecore.errors import OutOfMemoryError, PlanError, RefusedCallError
from devicecore.ledger import default_ledger
from devicecore.migrate.judging import keeps
from devicecore.migrate.lazy import executing
from devicecore.migrate.lazy.keeping import copied, pinned, referred
from devicecore.migrate.lazy.nodes import in_order, on_host
from devicecore.migrate.lifted.arena import PIECES, Piece, Shared
from devicecore.migrate.lifted.held import Held
from devicecore.migrate.lifted.lifting import Samples, Value, Values
from devicecore.migrate.lifted.loading import Loading, Recorded, RecordedStream, Started
from devicecore.migrate.plan import OptimizationPlan
from devicecore.migrate.report import Report, Tally
from devicecore.migrate.site import free_caches
from devicecore.resolution import resolve
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from devicecore.device import Device
    from devicecore.kernels import Exactness
    from devicecore.migrate.lazy.nodes import Node
    from devicecore.migrate.registry import StrategyRegistry

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
        device: Where it is computed; None for the one that the plan names.
        registry: How functions are computed; None for `default_strategies`.
        strict: Whether an error takes the place of the host's answer.
        verify: Of how many batches one is also computed by the original functions; 0 for none.
        immutable: Whether the program promises that arrays which its frames are given do not change
            while batches are loaded. They are read where they lie then, and not copied first; from
            page-locked memory a card does that by itself.
        collate_fn: What puts samples together, with tensors on the device in them, in this process;
            None for torch's own.
        options: What else torch's loader takes, such as ``batch_size`` and ``num_workers``.

    Raises:
        PlanError: The plan is none, or names several devices.
        ValueError: There is no batch size.
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
        device: str | Device | None = None,
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
        self.device: Device = resolve(device or _named(self.plan), framework="torch").device
        self._is_strict = strict
        self._verify = verify
        self._accept: Exactness = _loosest(self.plan)
        self._collate_fn = collate_fn
        self._tally = Tally("DeviceLoader", self.device.label)
        self._batches = 0
        self._off = ""
        self._pieces: dict[str, Piece] = {}
        # Of workers that stay until nobody has the loader any more.
        weakref.finalize(self, _forget, self._pieces, self._card).atexit = False
        keep = referred if immutable else pinned if self._is_cuda else copied
        held = Held(dataset, is_immutable=immutable)
        self._loading = Loading(
            self.plan, registry, collate_fn, held=held, keep=keep, is_strict=strict
        )
        options["worker_init_fn"] = Started(options.get("worker_init_fn"))
        is_stream = isinstance(dataset, IterableDataset)
        recorded = (RecordedStream if is_stream else Recorded)(dataset, self._loading)
        self._loader: DataLoader[Any] = DataLoader(
            recorded, collate_fn=self._loading.collate, **options
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
        """Yield batches; what is on the device is ordered on the current stream."""
        read: deque[tuple[Any, set[Piece]]] = deque()
        ahead: deque[Any] = deque()
        is_any = False
        with self._recording() as known:
            try:
                for batch in self._loader:
                    is_any = True
                    computed, pieces = self._computed(batch, known)
                    ahead.append(computed)
                    read.append((self._event(), pieces))
                    while read and (read[0][0] is None or read[0][0].query()):
                        _free(read.popleft()[1])
                    if len(ahead) > _AHEAD:
                        yield ahead.popleft()
            except Exception:  # of the program's dataset or collation, which may raise anything
                yield from ahead  # what came before the error
                raise
            finally:
                for event, pieces in read:  # workers that stay would never use them again
                    event.synchronize()
                    _free(pieces)
            yield from ahead
        if not self._tally.row().calls and is_any:
            self._say_that_nothing_is_recorded()

    def report(self) -> Report:
        """Return what became of the batches so far."""
        return Report([self._tally.row()], [])

    @property
    def _card(self) -> str | None:
        return self.device.torch_device if self._is_cuda else None

    @property
    def _is_cuda(self) -> bool:
        return self.device.device_type == "CUDA"

    @contextmanager
    def _recording(self) -> Iterator[dict[str, Piece]]:
        """Record samples in this process, if it has no workers that do so.

        Lends what becomes the shared memory of the workers, by its names.
        """
        lifter = None if self._loader.num_workers else self._loading.lifter.activate()
        stays = self._loader.persistent_workers
        pieces = self._pieces if stays else {}
        try:
            yield pieces
        finally:
            if lifter is not None:
                lifter.deactivate()
            if not stays:
                _forget(pieces, self._card)

    def _say_that_nothing_is_recorded(self) -> None:
        reason = "no sample had anything that the plan names and that a kernel computes"
        if self._is_strict:
            raise RefusedCallError("DeviceLoader", self.device.name, {"the migrator": reason})
        logging.getLogger("devicecore").warning("DeviceLoader has nothing to do: %s", reason)

    def _event(self) -> Any:
        """Return what says when all that was read for a batch is not needed any more."""
        if not self._is_cuda:
            return None
        cuda: Any = torch.cuda
        event = cuda.Event()
        event.record(torch.cuda.current_stream(torch.device(self.device.torch_device or "cuda")))
        return event

    def _computed(self, batch: Any, known: dict[str, Piece]) -> tuple[Any, set[Piece]]:
        """Return a batch with tensors in it, and the shared memory that is read for them."""
        is_collated = not isinstance(batch, Samples)
        leaves: list[Any] = []
        _walk(batch if is_collated else batch.samples, leaves.append)
        if is_collated:
            frames = list(zip(*(leaf.nodes for leaf in leaves), strict=True))
        else:
            frames = [(leaf.node,) for leaf in leaves]
        pieces = self._shared(frames, known)
        columns = self._tensors(frames, together=is_collated) if frames else []
        found = iter(columns)
        if is_collated:
            return _walk(batch, lambda _: next(found)), pieces
        assert self._collate_fn is not None
        return self._collate_fn(_walk(batch.samples, lambda _: next(found))), pieces

    def _tensors(self, frames: Sequence[Sequence[Node]], *, together: bool) -> list[torch.Tensor]:
        """Return a tensor for each value of all frames together, or for each frame's only one."""
        start = time.perf_counter()
        reason = self._off or self.device.gone
        if not reason:
            try:
                found = _on_device(
                    self.device, frames, together=together, is_strict=self._is_strict
                )
            except Exception as error:  # of a framework: whatever it is, the originals can
                if self._is_strict:
                    raise
                if isinstance(error, OutOfMemoryError):
                    free_caches(error)
                reason = f"{type(error).__name__}: {error}"
            else:
                self._batches += 1
                is_due = self._verify and self._batches % self._verify == 0
                if not is_due or self._is_right(frames, found, together=together):
                    moved = 0 if self.device.reads_host_memory else _given(frames)
                    self._tally.migrated(time.perf_counter() - start, moved)
                    return found
                reason = self._off
        if self._is_strict:
            raise RefusedCallError("DeviceLoader", self.device.name, {"the migrator": reason})
        reason = self._tally.bounded(reason)
        default_ledger().record("DeviceLoader", self.device.name, host_cpu().name, reason)
        found = self._on_host(frames, together=together)
        self._tally.fell_back(time.perf_counter() - start, reason)
        return found

    def _is_right(
        self, frames: Sequence[Sequence[Node]], found: list[torch.Tensor], *, together: bool
    ) -> bool:
        expected = _by_originals(frames, together=together)
        if all(
            keeps(self._accept, ours, theirs) for ours, theirs in zip(found, expected, strict=True)
        ):
            return True
        self._off = f"a batch was not {self._accept}, so the device is not used any more"
        return False

    def _on_host(self, frames: Sequence[Sequence[Node]], *, together: bool) -> list[torch.Tensor]:
        """Return what the originals compute, on the device if that takes it."""
        found = _by_originals(frames, together=together)
        if self.device.gone or self.device.torch_device is None:
            return found
        return [each.to(self.device.torch_device) for each in found]

    def _shared(self, frames: Sequence[Sequence[Node]], known: dict[str, Piece]) -> set[Piece]:
        """Return the shared memory that values are in; a card may copy from it by itself."""
        if not self._loader.num_workers:
            return set()
        nodes = (node for frame in frames for node in in_order(frame))
        pieces = {node.piece for node in nodes if isinstance(node, Shared)}
        for piece in pieces:
            if piece.name not in known:
                known[piece.name] = piece
                if self._is_cuda:
                    _register(piece)
        return pieces


def _free(pieces: set[Piece]) -> None:
    for piece in pieces:
        piece.free()


def _register(piece: Piece) -> None:
    """Lock memory into its pages; where that fails it is copied once more instead."""
    _runtime().cudaHostRegister(piece.memory.data_ptr(), piece.memory.nbytes, 0)


def _forget(pieces: dict[str, Piece], device: str | None) -> None:
    """Forget shared memory of workers that have ended, which a card may have read."""
    PIECES.forget(pieces)
    if device is not None and pieces:
        torch.cuda.synchronize(device)
        for piece in pieces.values():
            _runtime().cudaHostUnregister(piece.memory.data_ptr())
    pieces.clear()


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


def _loosest(plan: OptimizationPlan) -> Exactness:
    loosest: Exactness = "exact"
    for entry in plan.entries:
        if PROMISES.index(entry.options.accept) > PROMISES.index(loosest):
            loosest = entry.options.accept
    return loosest


def _on_device(
    device: Device, frames: Sequence[Sequence[Node]], *, together: bool, is_strict: bool
) -> list[torch.Tensor]:
    groups = executing.computed_together(device, frames, is_strict=is_strict)
    if not together:
        return [found for (found,) in executing.in_rows(len(frames), groups)]
    if len(groups) == 1:
        return groups[0][1]
    rows = executing.in_rows(len(frames), groups)
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def _by_originals(frames: Sequence[Sequence[Node]], *, together: bool) -> list[torch.Tensor]:
    rows = [[torch.from_numpy(on_host(node)) for node in frame] for frame in frames]
    if not together:
        return [found for (found,) in rows]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def _given(frames: Sequence[Sequence[Node]]) -> int:
    """Return the bytes of the arrays that values are computed from."""
    found = 0
    for frame in frames:
        node = frame[0]
        while len(frame) == 1 and len(node.inputs) == 1:  # most do one thing after the other
            (node,) = node.inputs
        used = in_order(frame) if node.inputs or len(frame) > 1 else (node,)
        found += sum(each.host.nbytes for each in used if each.host is not None)
    return found


def _walk(batch: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a batch with something else in the place of each value."""
    own = type(batch)
    if own is Value or own is Values:
        return replace(batch)
    if isinstance(batch, dict):
        found = {key: _walk(each, replace) for key, each in batch.items()}
        return found if own is dict else own(found)
    if isinstance(batch, tuple) and hasattr(own, "_make"):
        return tuple.__new__(own, [_walk(each, replace) for each in batch])
    if own is list or own is tuple:
        return own([_walk(each, replace) for each in batch])
    return batch
