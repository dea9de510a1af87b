"""Makes samples of other channel counts, sizes and strides of an operation's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from devicecore.cv.operation import Operation

    Array = np.ndarray[Any, Any]
    Sample = tuple[list[Any], dict[str, Any]]

# OpenCV's loops differ for 1 to 4 channels, and again for more: odd and even numbers of them.
CHANNELS = (1, 2, 3, 4, 5, 8)
_MOST_DTYPES = 3


def samples_of_channels(operation: Operation, counts: Iterable[int]) -> Iterator[Sample]:
    """Yield calls with images of other channel counts, for the first samples of an operation.

    OpenCV may refuse some of them, such as a mask of three channels.
    """
    changes = [_with_channels(count) for count in counts]
    for args, kwargs, images in _first_samples(operation):
        if len({image.shape[2:] for image in images}) == 1:
            yield from (operation.replace_images(args, kwargs, change) for change in changes)


def samples_of_sizes(operation: Operation) -> Iterator[Sample]:
    """Yield calls with images of other sizes and strides, for the first samples of an operation.

    OpenCV may refuse some of them, such as a matrix of one row only.
    """
    for args, kwargs, images in _first_samples(operation):
        if len({image.shape[:2] for image in images}) == 1:
            for change in _sizes(*images[0].shape[:2]):
                yield operation.replace_images(args, kwargs, change)


def _first_samples(
    operation: Operation,
) -> Iterator[tuple[Sequence[Any], Mapping[str, Any], list[Array]]]:
    """Yield the first sample of each kind of element types, and its images."""
    seen: set[tuple[str, ...]] = set()
    for args, kwargs in operation.examples():
        images = operation.images_in(args, kwargs)
        dtypes = tuple(str(image.dtype) for image in images)
        if dtypes in seen or not all(isinstance(image, np.ndarray) for image in images):
            continue
        if len(seen) == _MOST_DTYPES:
            return
        seen.add(dtypes)
        yield args, kwargs, images


def _sizes(height: int, width: int) -> Iterator[Callable[[Array], Array]]:
    """Yield what makes another size or stride of each image of a call."""
    high, wide = height - height % 2, width - width % 2
    yield lambda image: image[: high - 1, : wide - 1]
    yield lambda image: image[:high, :wide]
    yield lambda image: image[:1, :1]
    yield lambda image: image[::2, 1:]
    yield _by_columns


def _by_columns(image: Array) -> Array:
    """Return the same image with its columns, not its rows, one after the other in memory."""
    return np.ascontiguousarray(image.swapaxes(0, 1)).swapaxes(0, 1)


def _with_channels(count: int) -> Callable[[Array], Array]:
    def change(image: Array) -> Array:
        plane = image if image.ndim == 2 else image[..., 0]
        if count == 1:
            return np.ascontiguousarray(plane)
        return np.stack([np.roll(plane, shift, 1) for shift in range(count)], -1)

    return change
