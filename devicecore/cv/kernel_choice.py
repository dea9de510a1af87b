"""Chooses the kernel of a call: the first one on its device that promises enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.cv import catalog
from devicecore.cv.choice_log import is_wanted, say_choice
from devicecore.cv.self_test import why_untrusted
from devicecore.errors import RefusedCallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from devicecore.cv.operation import Operation
    from devicecore.cv.plan import Plan
    from devicecore.cv.policy import KernelPolicy
    from devicecore.device import Device


@frozen
class Choice:
    """What was found for one call.

    Attributes:
        operation: Whose kernel it is.
        plan: How it computes the call.
    """

    operation: Operation
    plan: Plan


def choose(
    name: str, device: Device, policy: KernelPolicy, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Choice:
    """Return who computes a call on *device*.

    Args:
        name: OpenCV's name of the function.
        device: Where.
        policy: What the caller allows.
        args: The arguments; of images, only their axes and types matter.
        kwargs: More of them.

    Raises:
        RefusedCallError: No kernel does; says why each does not.
    """
    refused: dict[str, str] = {}
    for label in _labels(device, policy):
        operation = catalog.find(name, label)
        if operation is None:
            refused[label] = "there is none"
            continue
        plan, why_not = operation.judge(args, kwargs, device, policy.accepted)
        if plan is None:
            refused[label] = why_not
        elif reason := why_untrusted(
            operation, device, _channels(operation.images_in(args, kwargs))
        ):
            refused[label] = reason
        else:
            if is_wanted():
                what = f"the {label} kernel, {plan.promise}"
                say_choice(name, device.name, args, kwargs, what, refused)
            return Choice(operation, plan)
    if not refused:
        refused[policy.label or "torch"] = f"there is none for {device.device_type}"
    if is_wanted():
        say_choice(name, device.name, args, kwargs, "no kernel takes it", refused)
    op = f"cv2.{name}"
    raise RefusedCallError(op, device.name, refused)


def _channels(images: Sequence[Any]) -> int:
    return int(images[0].shape[-1]) if images[0].ndim > 2 else 1


def _labels(device: Device, policy: KernelPolicy) -> Iterator[str]:
    """Yield the kinds of kernels that *device* may have, the best one first."""
    if device.torch_device is None and not device.reads_host_memory:
        return
    if device.device_type in catalog.TRITON_TYPES and policy.label in {None, "triton"}:
        yield "triton"
    if policy.label in {None, "torch"}:
        yield "torch"
    if policy.label == "kornia" or (policy.label is None and policy.accepted == "close"):
        yield "kornia"
