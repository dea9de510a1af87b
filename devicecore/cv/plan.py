"""`Plan`: how one call is computed, what it returns, and how exact that is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from devicecore.cv.image import BATCH_AXES
from devicecore.cv.results import first_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.cv.result_rules import ArrayInfo
    from devicecore.kernels import Exactness

# Images of a batch that one launch of a kernel is for.
MOST_AT_ONCE = 8192


@frozen(eq=False)
class Plan:
    """How one kind of call is computed.

    Attributes:
        run: Takes a tensor of shape (images, height, width, channels) for each argument that is an
            image, in their order, and returns one such tensor, or one with a row for each image, or
            a tuple of them.
        promise: How near the result comes to OpenCV's on the host.
        result: The shapes and types of the tensors that one image's result consists of. An
            operation adds what its rule says where the planner states nothing.
        quick: Does the same for one image, as it is and with a result as OpenCV shapes it; returns
            None where it cannot, which depends on how the image lies in memory.
        finish: Makes of one image's result, on the host, what OpenCV returns, where that is no
            array.
    """

    run: Callable[..., Any] = field(repr=False)
    promise: Exactness = "exact"
    finish: Callable[[Any], Any] | None = field(default=None, repr=False)
    quick: Callable[..., Any] | None = field(default=None, repr=False)
    result: tuple[ArrayInfo, ...] = ()

    def kernel(self, _device: object, /, *images: Any) -> Any:
        """Compute a call whose images are tensors on one device, which calls this.

        Args:
            images: With the axes of one image, of a plane or of a batch.

        Returns:
            The result, of the batch if the first one is a batch.
        """
        is_batch = images[0].ndim == BATCH_AXES
        if self.quick is not None and not is_batch:
            found = self.quick(*images)
            if found is not None:
                return found
        result = self.run(*map(_with_all_axes, images))
        return result if is_batch else first_result(result)


def in_parts(plan: Plan) -> Plan:
    """Return a plan that computes long batches in parts: grids of programs are not so long."""
    whole = plan.run

    def run(*images: Any) -> Any:
        count = max(each.shape[0] for each in images)
        if count <= MOST_AT_ONCE:
            return whole(*images)
        parts = [
            whole(*[each[at : at + MOST_AT_ONCE] if len(each) > 1 else each for each in images])
            for at in range(0, count, MOST_AT_ONCE)
        ]
        return _joined(parts)

    return evolve(plan, run=run)


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], (tuple, list)):
        return type(parts[0])(map(_joined, map(list, zip(*parts, strict=True))))
    torch = sys.modules["torch"]
    return torch.cat(parts)


def _with_all_axes(tensor: Any) -> Any:
    if tensor.requires_grad:  # kernels of ours are no part of a graph
        tensor = tensor.detach()
    if tensor.ndim == BATCH_AXES:
        return tensor
    return tensor[None, :, :, None] if tensor.ndim == 2 else tensor.unsqueeze(0)
