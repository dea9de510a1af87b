"""Dispatches one call of a `devicecore.cv` function: where it runs and what it returns."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv import batches, catalog, results
from devicecore.cv.batch_tensors import gather_tensors
from devicecore.cv.choice_log import is_wanted, say_choice
from devicecore.cv.dispatch_cache import CachedCall, dispatch_caches
from devicecore.cv.host_copies import DEEPEST, HostCopies
from devicecore.cv.image import BATCH_AXES
from devicecore.cv.native import native_kernel, original
from devicecore.cv.policy import DEFAULT, current_policy
from devicecore.errors import RefusedCallError, ScopeError
from devicecore.frameworks import class_in
from devicecore.ledger import default_ledger
from devicecore.runtime import default_runtime, host_cpu
from devicecore.scope import current_device
from devicecore.scope.scope_stack import OUTSIDE, innermost, open_around
from devicecore.transfer.torch_leaves import has_modes, without_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devicecore.cv.policy import KernelPolicy
    from devicecore.device import Device


# The devices of tensors; finding one by its name takes longer than launching a kernel.
_owners: dict[Any, Device] = {}


@functools.cache
def function(name: str) -> Callable[..., Any]:
    """Return the function of `devicecore.cv` that is called as one of OpenCV's."""
    kernel = native_kernel(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        device, policy = current_device(), current_policy()
        if is_wanted():  # what is known of calls like this one says nothing any more
            with without_modes():
                return _dispatched(name, device, args, kwargs)
        if (
            policy is DEFAULT
            and device.device_type == "CPU"
            and args
            and type(args[0]) is np.ndarray
            and args[0].ndim < BATCH_AXES
        ):
            return device.compute(kernel, *args, **kwargs)
        if has_modes():
            with without_modes():
                return _cached(name, device, policy, args, kwargs)
        return _cached(name, device, policy, args, kwargs)

    wrapped = functools.wraps(original(name))(call)
    wrapped.__module__ = "devicecore.cv"
    return wrapped


def _cached(
    name: str, device: Device, policy: KernelPolicy, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Compute a call as one like it was, if there was one."""
    if args and _is_tensor(args[0]):
        cached = dispatch_caches[name].find(policy, device, args, kwargs)
        if isinstance(cached, CachedCall):
            return cached.compute(args)
        if cached is not None and not policy.is_strict:
            return _answered(name, cached.device.name, cached.reason, args, kwargs)
    return _dispatched(name, device, args, kwargs)


def _dispatched(name: str, device: Device, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given, one = _first_image(args, kwargs)
    if one is None:
        return original(name)(*args, **kwargs)
    device = device_for(one, device)
    policy = current_policy()
    on_host = policy.label == "native" or (policy.label is None and device.device_type == "CPU")
    compute = _native if on_host else functools.partial(_computed, device, policy)
    if on_host and is_wanted():
        what = f"OpenCV itself, as {_why_native(policy, one)}"
        say_choice(name, device.name, args, kwargs, what, {})
    if not batches.is_batch(name, given):
        return compute(name, args, kwargs)
    if not on_host and hasattr(given, "ndim"):
        return compute(name, args, kwargs)
    calls = batches.split_calls(name, args, kwargs)
    if on_host:
        return batches.join_results([compute(name, *each) for each in calls], given)
    return _by_size(name, compute, calls)


def _why_native(policy: KernelPolicy, one: Any) -> str:
    if policy.label == "native":
        return "the label 'native' is asked for"
    if _is_tensor(one):
        return "the tensor is on the CPU"
    if innermost.get() is OUTSIDE:
        return "no device_scope names another device than the CPU"
    return "the device_scope is of the CPU"


def _first_image(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the first argument that is an image or several, and the first image in it."""
    for given in (*args, *kwargs.values()):
        one = given
        for _ in range(DEEPEST):
            if isinstance(one, (list, tuple)) and one:
                one = one[0]
        if _is_tensor(one) or isinstance(one, np.ndarray):
            return given, one
    return None, None


def _by_size(name: str, compute: Callable[..., Any], calls: Sequence[batches.Call]) -> list[Any]:
    """Compute calls for images of any sizes, all those of one size at once."""
    operation = catalog.find(name, "torch")
    if operation is None or any(operation.destination(*each) is not None for each in calls):
        return [compute(name, *each) for each in calls]
    results: list[Any] = [None] * len(calls)
    for positions, whole in batches.stack_by_size(
        calls, operation.images_in, operation.replace_images
    ):
        several = compute(name, *whole)
        for position, result in zip(positions, batches.split_results(several), strict=True):
            results[position] = result
    return results


def _is_tensor(value: Any) -> bool:
    return isinstance(value, class_in("torch", "Tensor"))


def device_for(image: Any, current: Device) -> Device:
    """Return the device that computes on *image*: a tensor's own, for arrays the current one.

    Raises:
        ScopeError: It is a tensor, and a scope names another device.
    """
    if not _is_tensor(image):
        return current if current.torch_device is not None else current.memory_device
    owner = _owners.get(image.device)
    if owner is None or owner.gone:
        owner = _owners[image.device] = default_runtime().device(str(image.device), "torch")
    if current.memory_device is not owner and any(open_around(innermost.get())):
        msg = (
            f"a tensor on {owner.name} is computed there, and the scope is of {current.name}; "
            "move it with tensors_to_device, or leave the scope"
        )
        raise ScopeError(msg)
    return owner


def _native(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Let OpenCV compute a call; tensors go to the host, and the result back to where they were."""
    if not any(map(_has_tensor, (*args, *kwargs.values()))):
        return host_cpu().compute(native_kernel(name), *args, **kwargs)
    copies = HostCopies()
    host_args = [copies.of(each) for each in args]
    host_kwargs = {key: copies.of(each) for key, each in kwargs.items()}
    result = host_cpu().compute(native_kernel(name), *host_args, **host_kwargs)
    return copies.returned(result)


def _has_tensor(value: Any, depth: int = 0) -> bool:
    if isinstance(value, (list, tuple)):
        return depth < DEEPEST and any(_has_tensor(each, depth + 1) for each in value)
    return _is_tensor(value)


def _computed(
    device: Device, policy: KernelPolicy, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Compute a call on *device* if a kernel may, else by OpenCV."""
    try:
        return compute_by_kernel(device, policy, name, args, kwargs)
    except RefusedCallError as error:
        return _without_kernel(error, device, policy, name, args, kwargs)


def compute_by_kernel(
    device: Device, policy: KernelPolicy, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Compute a call, of one image or of a batch in one array, by a kernel on *device*.

    Args:
        device: Where; tensors are there already.
        policy: Which kernels the caller allows.
        name: OpenCV's name of the function.
        args: The arguments.
        kwargs: More of them.

    Raises:
        RefusedCallError: No kernel does, and none has begun.
        ValueError: The images of the call do not go together.
    """
    from devicecore.cv.kernel_choice import choose  # kernels need torch, and OpenCV's own do not

    choice = choose(name, device, policy, args, kwargs)
    operation, plan = choice.operation, choice.plan
    images = operation.images_in(args, kwargs)
    tensors = gather_tensors(images, device)
    destination = operation.destination(args, kwargs)
    if _is_tensor(images[0]):
        if destination is None:
            dispatch_caches[name].remember(policy, args, kwargs, images, device, plan)
        return results.write_into(destination, device.compute(plan.kernel, *tensors))
    result = device.compute(plan.kernel, *tensors)
    is_batch = images[0].ndim == BATCH_AXES
    if not is_batch:
        return results.write_into(destination, results.to_host(result, plan.finish))
    finished = results.batch_results(result, plan.finish)
    into = results.write_each_into if isinstance(finished, list) else results.write_into
    return into(destination, finished)


def _without_kernel(
    error: RefusedCallError,
    device: Device,
    policy: KernelPolicy,
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Let OpenCV answer a call, and say so, unless that is forbidden.

    Raises:
        NoKernelError: The caller asked for a kernel, or for an error in its place.
    """
    reasons = "; ".join(f"{label}: {why}" for label, why in error.refused.items())
    reason = reasons or "no kernel is for it"
    given, one = _first_image(args, kwargs)
    is_batch = batches.is_batch(name, given)
    if policy.label is not None or policy.is_strict:
        # About calls that nobody can compute, OpenCV's own words come first.
        if is_batch:
            _several_native(name, given, args, kwargs)
        else:
            _native(name, args, kwargs)
        raise error
    if is_batch:
        result = _several_native(name, given, args, kwargs)
        default_ledger().record(error.op, error.device, host_cpu().name, reason)
        return result
    result = _answered(name, error.device, reason, args, kwargs)
    operation = catalog.find(name, "torch")
    has_place = operation is not None and operation.destination(args, kwargs) is not None
    if args and one is args[0] and _is_tensor(one) and not has_place:
        dispatch_caches[name].remember_refusal(policy, args, kwargs, device, reason)
    return result


def _several_native(name: str, given: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    each = [_native(name, *call) for call in batches.split_calls(name, args, kwargs)]
    return batches.join_results(each, given)


def _answered(
    name: str, device: str, reason: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Let OpenCV answer a call of *device*, and record why."""
    result = _native(name, args, kwargs)
    default_ledger().record(f"cv2.{name}", device, host_cpu().name, reason)
    return result
