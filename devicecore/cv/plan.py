"""`Plan`: how one call will be computed, and what is promised of its pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from attrs import field, frozen

from devicecore.cv.results import first
from devicecore.kernels import Exactness

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_AXES = 4
# From the same values to about the same.
PROMISES: tuple[Exactness, ...] = get_args(Exactness)


@frozen(eq=False)
class Plan:
    """How one kind of call is computed.

    Attributes:
        run: Takes a tensor of shape (images, height, width, channels) for each argument that is an
            image, in their order, and returns one such tensor, or one with a row for each image, or
            a tuple of them.
        promise: How near the result comes to OpenCV's on the host.
        finish: Makes of one image's result, on the host, what OpenCV returns, where that is no
            array.
    """

    run: Callable[..., Any] = field(repr=False)
    promise: Exactness = "exact"
    finish: Callable[[Any], Any] | None = field(default=None, repr=False)

    def compute(self, *images: Any) -> Any:
        """Compute a call whose images are tensors on one device.

        Args:
            images: With the axes of one image, of a plane or of a batch.

        Returns:
            The result, of the batch if the first one is a batch.
        """
        result = self.run(*map(_with_all_axes, images))
        return result if images[0].ndim == BATCH_AXES else first(result)

    def kernel(self, _device: object, /, *images: Any) -> Any:
        """Do the same as `compute`, where a device calls it."""
        return self.compute(*images)


def _with_all_axes(tensor: Any) -> Any:
    if tensor.ndim == BATCH_AXES:
        return tensor
    return tensor[None, :, :, None] if tensor.ndim == 2 else tensor.unsqueeze(0)
