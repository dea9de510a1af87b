"""Placeholders for recorded arrays in samples and batches."""

from __future__ import annotations

from collections import UserDict
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from devicecore.migrate.recording.materialize import ORDINARY
from devicecore.migrate.recording.recorded_tensor import RecordedTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from devicecore.migrate.recording.nodes import Node


@frozen
class ArrayPlaceholder:
    """Stands for a recorded array in a sample.

    Attributes:
        node: How it is computed.
        runs_backwards: Whether the array runs backwards through memory along an axis, of which
            torch makes no tensor.
    """

    node: Node = field(eq=False)
    runs_backwards: bool = False


@frozen
class BatchPlaceholder:
    """Stands for a tensor in a batch: the recorded value of each sample.

    Attributes:
        nodes: How each is computed.
        dtype: The tensor's type, where those of the samples differ.
    """

    nodes: tuple[Node, ...] = field(eq=False)
    dtype: torch.dtype | None = None


@frozen
class Samples:
    """Samples that are not collated yet, with an `ArrayPlaceholder` for each array.

    Attributes:
        samples: The samples.
    """

    samples: list[Any]


def put_placeholders(sample: Any, nodes: list[Node]) -> Any:
    """Return a sample with an `ArrayPlaceholder` in the place of each array that was only recorded.

    Args:
        sample: A sample.
        nodes: What these values are added to.
    """
    return _walked(sample, frozenset(ORDINARY), partial(_packed, nodes))


def _packed(nodes: list[Node], value: Any) -> Any:
    array = value.array if type(value) is RecordedTensor else value
    if array.is_on_host:
        return ORDINARY[type(value)](value)
    nodes.append(array.node)
    return ArrayPlaceholder(nodes[-1], array.is_view and min(array.strides) < 0)


def name_classes(sample: Any) -> list[str]:
    """Return the names of the classes of objects in a sample, of which nobody knows the members."""
    classes = {type(each) for each in _leaves(sample)}
    found = (each for each in classes if each.__module__.partition(".")[0] not in _KNOWN)
    return sorted(each.__qualname__ for each in found)


_KNOWN: Final = frozenset({"builtins", "numpy", "torch"})


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, UserDict)):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        yield value
        return
    for each in tuple(value):
        yield from _leaves(each)


def replace_placeholders(batch: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a batch with its placeholders replaced.

    Args:
        batch: What torch's collation, or a dataset, has made.
        replace: Returns what takes the place of one.
    """
    return _walked(batch, _VALUES, replace)


_VALUES: Final = frozenset({ArrayPlaceholder, BatchPlaceholder})


def _walked(value: Any, leaves: frozenset[type], replace: Callable[[Any], Any]) -> Any:
    """Return a value with others in the place of those of some classes; containers are new ones."""
    own = type(value)
    if own in leaves:
        return replace(value)
    if own is dict:
        return {key: _walked(each, leaves, replace) for key, each in value.items()}
    if isinstance(value, (dict, UserDict)):
        found = copy(value)
        for key, each in value.items():
            found[key] = _walked(each, leaves, replace)
        return found
    if isinstance(value, tuple) and hasattr(own, "_make"):
        return tuple.__new__(own, [_walked(each, leaves, replace) for each in value])
    if own is list or own is tuple:
        return own([_walked(each, leaves, replace) for each in value])
    return value
