"""Samples of a dataset whose frames are only recorded, in the process that loads them.

Nothing of it needs a device: whoever gets the samples computes what was recorded, there or by the
original functions.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.cv.plan import PROMISES
from devicecore.errors import RefusedCallError
from devicecore.ledger import default_ledger
from devicecore.migrate.lazy.current import RECORDING
from devicecore.migrate.lazy.device_array import DeviceArray
from devicecore.migrate.lazy.nodes import on_host
from devicecore.migrate.lazy.recording import Recording
from devicecore.migrate.lazy.results import kept_of, on_arrays, returned
from devicecore.migrate.lazy.saved import Saved
from devicecore.migrate.lazy.sites import REFUSALS
from devicecore.migrate.migrator import PipelineMigrator
from devicecore.migrate.plan import Options
from devicecore.migrate.report import Tally
from devicecore.migrate.site import Site
from devicecore.migrate.strategy import MoveInputStrategy
from devicecore.migrate.values import pixels_among, replaced
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from devicecore.migrate.lazy.nodes import Node, Operation
    from devicecore.migrate.plan import OptimizationPlan, PlanEntry
    from devicecore.migrate.registry import StrategyRegistry
    from devicecore.migrate.strategy import Strategy

    Array = np.ndarray[Any, Any]

# After so many samples, one after the other, that could not be recorded no more are.
_MOST_REFUSED = 3


@frozen(eq=False)
class LiftedSite(Site):
    """The calls of a path in a sample: recorded while a sample is loaded, else the program's own.

    Attributes:
        operation: What records them; None where that cannot be, as of frames.
    """

    operation: Operation | None = None

    def call(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what stands for the result of the original, or the result."""
        recording = RECORDING.get()
        if recording is None or self.strategy.runs_original:
            return original(*args, **kwargs)
        wanted = self.options.min_pixels
        is_large = not wanted or pixels_among(args, kwargs) >= wanted
        if self.operation is not None and is_large:
            result = recording.record(self.operation, args, kwargs, self.options)
            if result is not None:
                return result
        found = on_arrays(lambda given, named: original(*given, **named), args, kwargs)
        if is_large:  # only now: of calls that nobody can compute, the original has its own words
            self._say(self.tally.bounded("no kernel computes it in a sample"))
        return found

    def _say(self, reason: str) -> None:
        if self.care.is_strict:
            raise RefusedCallError(self.tally.path, self.source, {"the migrator": reason})
        default_ledger().record(self.tally.path, self.source, host_cpu().name, reason)


class Lifter(PipelineMigrator):
    """Records the frames that a plan names in the samples of a dataset.

    Args:
        plan: The plan.
        registry: How functions are computed.
        keep: Returns the values that an array of the program has now.
        strict: Whether a call that no kernel computes is an error.
    """

    def __init__(
        self,
        plan: OptimizationPlan,
        registry: StrategyRegistry | None,
        keep: Callable[[Array], Node],
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(plan, registry, strict=strict)
        self._keep = keep
        self._options: Options = max(
            (entry.options for entry in plan.entries if not entry.is_original),
            key=lambda options: PROMISES.index(options.accept),
            default=Options(),
        )
        self._refused = 0
        self._last: Recording | None = None

    def sample(self, load: Callable[[Any], Any], index: Any, *, repeats: bool) -> Any:
        """Return a sample with a `DeviceArray` in the place of each array that was only recorded.

        Args:
            load: Returns the sample of an index.
            index: Which.
            repeats: Whether it can be loaded anew if it cannot be recorded.
        """
        if self._refused >= _MOST_REFUSED:
            return load(index)
        saved = Saved((load, index), {})
        recording = self._last = Recording(on_host, self._keep, None, self._options)
        token = RECORDING.set(recording)
        try:
            found = load(index)
        except Exception as error:
            is_of_opencv = type(error).__module__ == "cv2"
            if not repeats or not recording.calls:
                raise
            if not is_of_opencv and not isinstance(error, REFUSALS):
                raise
            reason = f"{type(error).__name__}: {error}"
        else:
            self._refused = 0
            return found
        finally:
            RECORDING.reset(token)
        saved.put_back()
        found = load(index)  # outside of all samples, so by the originals
        self._refused += 1
        words = "no more are" if self._refused >= _MOST_REFUSED else "loaded anew without that"
        logging.getLogger("devicecore").warning(
            "a sample could not be recorded, %s: %s", words, reason
        )
        return found

    def find_kept(self, load: Callable[[Any], Any]) -> None:
        """Give a dataset arrays of numpy in the place of those that it keeps from the last sample.

        Args:
            load: What has loaded that; nobody else has anything of it any more.
        """
        last, self._last = self._last, None
        if last is not None and last.alive():
            returned(None, last, [load])
            # Generators and caches may have others, and their memory is soon used again.
            for memory in kept_of(last):
                memory.on_host()

    def _has_recorded_frames(self) -> bool:
        return True

    def _site(self, path: str, entry: PlanEntry, strategy: Strategy | None) -> Site | None:
        if strategy is not None and entry.options.kernel == "native":
            return None
        how = strategy or MoveInputStrategy()
        operation = getattr(strategy, "recorded", None)
        tally = Tally(path, entry.device)
        return LiftedSite(None, entry.device, entry.options, how, self._care, tally, "", operation)


@frozen
class Value:
    """What a sample has in the place of an array that was only recorded.

    Attributes:
        node: How it is computed.
    """

    node: Node = field(eq=False)


@frozen
class Values:
    """What a batch has in the place of a tensor: the value of each sample.

    Attributes:
        nodes: How each is computed.
    """

    nodes: tuple[Node, ...] = field(eq=False)


@frozen
class Samples:
    """Samples that are still to be put together, with a `Value` for each array.

    Attributes:
        samples: The samples.
    """

    samples: list[Any]


def packed(sample: Any, nodes: list[Node]) -> Any:
    """Return a sample with a `Value` in the place of each array that was only recorded.

    Args:
        sample: A sample.
        nodes: What these values are added to.
    """
    return replaced(sample, partial(_packed, nodes))


def _packed(nodes: list[Node], array: Any) -> Any:
    if type(array) is not DeviceArray:
        return array
    if array.is_on_host:
        return array.values
    nodes.append(array.node)
    return Value(nodes[-1])
