"""What samples and batches have in the place of arrays that were only recorded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.migrate.lazy.device_array import DeviceArray
from devicecore.migrate.lazy.tensors import RecordedTensor
from devicecore.migrate.values import replaced

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.lazy.nodes import Node


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


def _packed(nodes: list[Node], value: Any) -> Any:
    own = type(value)
    array = value.array if own is RecordedTensor else value
    if type(array) is not DeviceArray:
        return value
    if array.is_on_host:
        return value.on_host if own is RecordedTensor else array.values
    nodes.append(array.node)
    return Value(nodes[-1])


def walked(batch: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a batch with something else in the place of each `Value` and `Values`.

    Args:
        batch: What torch's collation, or a dataset, has made.
        replace: Returns what takes the place of one.
    """
    own = type(batch)
    if own is Value or own is Values:
        return replace(batch)
    if isinstance(batch, dict):
        found = {key: walked(each, replace) for key, each in batch.items()}
        return found if own is dict else own(found)
    if isinstance(batch, tuple) and hasattr(own, "_make"):
        return tuple.__new__(own, [walked(each, replace) for each in batch])
    if own is list or own is tuple:
        return own([walked(each, replace) for each in batch])
    return batch
