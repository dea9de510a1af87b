"""Splits calls with several images, stacks images of one size, joins the results."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv.cache_key import cache_key
from devicecore.cv.catalog import find_row
from devicecore.cv.image import BATCH_AXES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Call = tuple[tuple[Any, ...], dict[str, Any]]


def is_batch(name: str, value: Any) -> bool:
    """Return whether *value*, the first argument of a function, is several images."""
    if isinstance(value, (list, tuple)):
        if find_row(name).takes_list:
            return bool(value) and all(isinstance(each, (list, tuple)) for each in value)
        return bool(value) and all(getattr(each, "ndim", 0) for each in value)
    return getattr(value, "ndim", 0) == BATCH_AXES


def split_calls(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Call]:
    """Return a call for each image; what is no batch is given to all of them.

    Raises:
        ValueError: Two batches have different lengths.
    """
    values = [*args, *kwargs.values()]
    several = [is_batch(name, value) for value in values]
    lengths = {len(value) for value, is_several in zip(values, several, strict=True) if is_several}
    if len(lengths) != 1:
        msg = f"batches of one call have the same length, not {sorted(lengths)}"
        raise ValueError(msg)
    calls = []
    for index in range(*lengths):
        own = [
            value[index] if is_several else value
            for value, is_several in zip(values, several, strict=True)
        ]
        calls.append((tuple(own[: len(args)]), dict(zip(kwargs, own[len(args) :], strict=True))))
    return calls


def stack_by_size(
    calls: Sequence[Call], images_in: Callable[..., list[Any]], replaced: Callable[..., Any]
) -> list[tuple[list[int], Call]]:
    """Return calls for whole batches of images of one size, each with the positions of its images.

    Calls whose other arguments differ, or are no part of a kind, are not put together.

    Args:
        calls: A call for each image.
        images_in: Returns the images of a call.
        replaced: Returns a call with others in their place.
    """
    positions: defaultdict[Any, list[int]] = defaultdict(list)
    images = [images_in(*each) for each in calls]
    for index, own in enumerate(images):
        sizes = tuple((tuple(each.shape), str(each.dtype)) for each in own)
        positions[sizes, _rest(calls[index], replaced, index)].append(index)
    batches = []
    for members in positions.values():
        columns = iter(zip(*(images[index] for index in members), strict=True))
        args, kwargs = replaced(*calls[members[0]], lambda _: _stack(next(columns)))  # noqa: B023 - called at once
        batches.append((members, (tuple(args), kwargs)))
    return batches


def _rest(call: Call, replaced: Callable[..., Any], index: int) -> Any:
    """Return the kind of a call's other arguments, or what no other call has."""
    try:
        args, kwargs = replaced(*call, lambda _: None)
        kind = (cache_key(args), cache_key(tuple(kwargs.items())))
        hash(kind)
    except TypeError:
        return index
    return kind


def split_results(results: Any) -> list[Any]:
    """Return the results of single images from those of a whole batch."""
    if isinstance(results, list):
        return results
    if isinstance(results, tuple):
        return list(zip(*map(split_results, results), strict=True))
    one_plane = results.ndim == BATCH_AXES and results.shape[-1] == 1
    return [each[..., 0] if one_plane else each for each in results]


def join_results(results: Sequence[Any], given: Any) -> Any:
    """Return the results of single images as the images were given: a list, or one array."""
    if isinstance(given, (list, tuple)) or not all(getattr(each, "ndim", 0) for each in results):
        return list(results)
    if all(each.ndim == results[0].ndim == 2 for each in results):
        results = [each[..., None] for each in results]
    return _stack(results)


def _stack(images: Sequence[Any]) -> Any:
    """Return one array or tensor of several; a plane has one channel there."""
    if images[0].ndim == 2:
        images = [each[..., None] for each in images]
    if isinstance(images[0], np.ndarray):
        return np.stack(images)
    import torch  # the images are its tensors

    return torch.stack(list(images))
