"""Masks: which pixels a call reads or writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from attrs import evolve

from devicecore.cv.environment import environment
from devicecore.cv.image import Image
from devicecore.cv.torch_support.dtypes import unsigned_as_signed

if TYPE_CHECKING:
    from devicecore.cv.plan import Plan

    Tensor = torch.Tensor


def is_mask(mask: Any, image: Any, *others: str) -> bool:
    """Return whether there is a mask, or none, and OpenCV would take it for *image*.

    Args:
        mask: What is given for one.
        image: What it is for.
        others: Types that this function takes since OpenCV 5, apart from bytes and booleans.
    """
    if mask is None:
        return True
    types = {"uint8", "bool", *others} if environment().version >= (5, 0) else {"uint8"}
    return (
        isinstance(mask, Image)
        and isinstance(image, Image)
        and mask.dtype in types
        and (mask.size, mask.channels) == (image.size, 1)
    )


def apply_mask(plan: Plan | None, mask: Any, image: Any, dst: Any) -> Plan | None:
    """Return a plan whose result is 0 where there is a mask that is 0.

    Args:
        plan: Of the call without a mask.
        mask: What is given for one; the last image of the call.
        image: What it is for.
        dst: What is given for the result; with a mask, OpenCV leaves some of it as it was.
    """
    if mask is None or plan is None:
        return plan
    if dst is not None or not is_mask(mask, image, "int8"):
        return None
    compute = plan.run

    def run(*images: Tensor) -> Tensor:
        result = compute(*images[:-1])
        kept = torch.where(images[-1] != 0, unsigned_as_signed(result), 0)
        return kept.view(result.dtype)

    return evolve(plan, run=run)
