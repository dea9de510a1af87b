"""Dataset wrappers that record samples, in workers or in the process itself."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch
from torch.utils.data import (
    Dataset,
    IterableDataset,
    IterDataPipe,
    MapDataPipe,
    get_worker_info,
)
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from devicecore.migrate.calls.guard import limit_threads
from devicecore.migrate.loader.arena import Arena
from devicecore.migrate.loader.placeholders import (
    ArrayPlaceholder,
    BatchPlaceholder,
    Samples,
    put_placeholders,
)
from devicecore.migrate.loader.sample_recorder import SampleRecorder
from devicecore.migrate.recording.nodes import make_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from devicecore.migrate.calls.report import CallStats
    from devicecore.migrate.loader.shared_arrays import SharedArrays
    from devicecore.migrate.plan.optimization_plan import OptimizationPlan
    from devicecore.migrate.recording.nodes import Node
    from devicecore.migrate.strategies.registry import StrategyRegistry

    Array = np.ndarray[Any, Any]


class Collated(NamedTuple):
    """A collated batch, with the counts of its calls.

    Attributes:
        batch: It has `BatchPlaceholder` in the place of tensors, or is `Samples`.
        rows: What became of its calls, and of others before.
        matched: The keys of the plan that were for calls in the process so far.
    """

    batch: Any
    rows: list[CallStats]
    matched: frozenset[str]


class SampleLoading:
    """Loads and records samples, and collates them as far as that needs no values.

    It goes to workers, where everything is made anew that belongs to a process.

    Args:
        plan: What is recorded.
        registry: How functions are computed.
        collate_fn: What puts samples together; None for torch's own.
        shared: The arrays that workers need not send.
        keep: Returns the values that an array has now, where there are no workers.
        is_strict: Whether calls that no kernel computes are errors.

    Attributes:
        owner: Whose memory it is that workers send from now on.
        name: What tells the loader from others, in all processes.
    """

    def __init__(
        self,
        plan: OptimizationPlan,
        registry: StrategyRegistry | None,
        collate_fn: Callable[[list[Any]], Any] | None,
        *,
        shared: SharedArrays,
        keep: Callable[[Array], Node],
        is_strict: bool,
    ) -> None:
        self.owner: str = uuid.uuid4().hex
        self.name: Final = uuid.uuid4().hex
        self._plan = plan
        self._registry = registry
        self._collate_fn = collate_fn
        self._keep_here: Callable[[Array], Node] = keep
        self._shared: SharedArrays | None = shared
        self._is_strict = is_strict
        self._recorder: SampleRecorder | None = None
        self._arena: Arena | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_shared": None, "_recorder": None, "_arena": None}

    def begin_worker(self) -> None:
        """Record what is loaded in this process from now on, which is a worker."""
        limit_threads()
        self._arena = Arena(self.owner)
        self._recorder = self._made(self._keep)
        self._recorder.activate()

    @property
    def recorder(self) -> SampleRecorder:
        """What records samples in this process, while it is active."""
        if self._recorder is None:
            self._recorder = self._made(self._keep_here)
        return self._recorder

    def _made(self, keep: Callable[[Array], Node]) -> SampleRecorder:
        return SampleRecorder(
            self._plan, self._registry, keep, strict=self._is_strict, loader=self.name
        )

    def _keep(self, array: Array) -> Node:
        """Return the values of an array, as the process that has the loader can read them."""
        assert self._arena is not None
        found = None if self._shared is None else self._shared.node(array)
        return self._arena.keep(array) if found is None else found

    def sample(self, load: Callable[[Any], Any], index: Any, **how: Any) -> Any:
        """Return a sample with an `ArrayPlaceholder` for each recorded array.

        Args:
            load: Returns the sample of an index.
            index: Which.
            how: See `SampleRecorder.sample`.
        """
        recorder = self.recorder
        nodes: list[Node] = []
        with self._undone_by_errors():
            sample = put_placeholders(recorder.sample(load, index, **how), nodes)
            recorder.find_kept(load, sample, is_recorded=bool(nodes))
        if self._arena is not None:
            self._arena.send(nodes)
        return sample

    def collate(self, samples: list[Any]) -> Collated:
        """Return a batch, and what became of its calls and of others before."""
        self.recorder.end_batch()
        with self._undone_by_errors():
            batch = (
                Samples(samples) if self._collate_fn is not None else self._put_together(samples)
            )
        rows = self.recorder.taken()
        if self._arena is not None:
            self._arena.close()
        return Collated(batch, rows, self.recorder.matched)

    def _put_together(self, samples: list[Any]) -> Any:
        try:
            return collate(samples, collate_fn_map=_COLLATIONS)
        except Exception as error:  # whatever samples of the program's are
            self.recorder.collation_failed("torch's default_collate", error)
            raise

    @contextmanager
    def _undone_by_errors(self) -> Iterator[None]:
        """Free the memory of a batch that nobody will get."""
        with ExitStack() as undo:
            if self._arena is not None:
                undo.callback(self.recorder.tell_of_error)
                undo.callback(self._arena.drop)
                undo.callback(self.recorder.end_batch)  # before that
            yield
            undo.pop_all()


def _collated(kind: type, samples: Sequence[Any], **how: Any) -> Any:
    """Return what stands for a tensor, or torch's own if there are only arrays or tensors.

    Some of them may have been computed already: the program has looked at their values.
    """
    if not any(type(each) is ArrayPlaceholder for each in samples):
        return default_collate_fn_map[kind](samples, **how)
    nodes = tuple(map(_node, samples))
    results = {node.expr.results[0] for node in nodes}
    if len(results) == 1:
        return BatchPlaceholder(nodes)
    # Of several sizes or types torch makes an error, or one type: each time by its own rules.
    alike = [torch.from_numpy(np.zeros(node.expr.shape, node.expr.dtype)) for node in nodes]
    return BatchPlaceholder(nodes, default_collate_fn_map[torch.Tensor](alike, **how).dtype)


def _node(sample: Any) -> Node:
    if type(sample) is not ArrayPlaceholder:
        return make_source(torch.as_tensor(sample).detach().numpy())  # its errors are torch's
    if sample.runs_backwards:
        torch.as_tensor(_BACKWARDS)  # torch's own error
    return sample.node


_BACKWARDS: Final = np.zeros(2)[::-1]
_COLLATIONS: dict[Any, Any] = {
    **default_collate_fn_map,
    **{kind: partial(_collated, kind) for kind in (ArrayPlaceholder, np.ndarray, torch.Tensor)},
}


class RecordedDataset(Dataset[Any]):
    """A dataset whose samples are recorded.

    Args:
        dataset: The program's own.
        loading: What loads samples.

    Attributes:
        dataset: The program's own.
    """

    def __init__(self, dataset: Any, loading: SampleLoading) -> None:
        self.dataset: Any = dataset
        self._loading = loading

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._loading.sample(self.dataset.__getitem__, index, repeats=True)


class RecordedBatches(RecordedDataset):
    """A dataset that loads the samples of a batch by itself."""

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return the samples of these indices."""
        load, count = self.dataset.__getitems__, len(indices)
        return list(self._loading.sample(load, indices, repeats=True, count=count))


def record_dataset(dataset: Any, loading: SampleLoading) -> Dataset[Any]:
    """Return a dataset whose samples are recorded.

    Args:
        dataset: The program's own.
        loading: What loads samples.

    Raises:
        TypeError: It is a pipe of torch, which its loader changes before it loads anything.
    """
    if isinstance(dataset, (IterDataPipe, MapDataPipe)):
        msg = f"{type(dataset).__name__} is a DataPipe; give it to torch's own DataLoader"
        raise TypeError(msg)
    if isinstance(dataset, IterableDataset):
        return RecordedStream(dataset, loading)
    if getattr(dataset, "__getitems__", None):  # as torch's loader asks
        return RecordedBatches(dataset, loading)
    return RecordedDataset(dataset, loading)


class RecordedStream(IterableDataset[Any]):
    """An iterable dataset whose samples are recorded.

    Args:
        dataset: The program's own.
        loading: What loads samples.

    Attributes:
        dataset: The program's own.
    """

    def __init__(self, dataset: Iterable[Any], loading: SampleLoading) -> None:
        self.dataset: Any = dataset
        self._loading = loading

    def __len__(self) -> int:
        return len(self.dataset)  # it may have none, and says so

    def __iter__(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        end = object()
        while (
            sample := self._loading.sample(partial(next, samples), end, repeats=False)
        ) is not end:
            yield sample


class WorkerInit:
    """Starts a worker: the program finds its own dataset there, as in torch's loader.

    Args:
        loading: What loads samples.
        function: The program's own; None for none.
    """

    def __init__(self, loading: SampleLoading, function: Callable[[int], Any] | None) -> None:
        self._loading = loading
        self._function = function

    def __call__(self, worker: int) -> None:
        """Begin the worker of that number."""
        self._loading.begin_worker()
        info: Any = get_worker_info()
        object.__setattr__(info, "dataset", info.dataset.dataset)  # it refuses to be changed
        if self._function is not None:
            self._function(worker)
