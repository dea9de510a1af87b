"""Dispatch cache: reuses the kernel chosen for an earlier call with the same signature.

A GPU may be done with a small call sooner than Python is with what goes before its launch.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.cv.cache_key import cache_key
from devicecore.cv.environment import settings
from devicecore.scope.scope_stack import OUTSIDE, innermost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devicecore.cv.plan import Plan
    from devicecore.cv.policy import KernelPolicy
    from devicecore.device import Device

# With more kinds of calls of one function than this, all are chosen anew.
_MOST = 1024
_FIRST = (0,)


@frozen(eq=False)
class CachedCall:
    """A call of one kind, on tensors.

    Attributes:
        device: Where they are.
        plan: How it is computed.
        places: Which of the arguments are the images.
    """

    device: Device
    plan: Plan
    places: tuple[int, ...]

    def compute(self, args: Sequence[Any]) -> Any:
        """Compute a call of that kind."""
        if self.places == _FIRST:
            return self.device.compute(self.plan.kernel, args[0])
        return self.device.compute(self.plan.kernel, *[args[place] for place in self.places])


@frozen(eq=False)
class CachedRefusal:
    """A call of one kind, on tensors, that no kernel computes, so that OpenCV answers.

    Attributes:
        device: Where they are.
        reason: Why no kernel does.
    """

    device: Device
    reason: str


class DispatchCache:
    """The kinds of calls that were made of one function."""

    def __init__(self) -> None:
        self._known: dict[Any, CachedCall | CachedRefusal] = {}

    def find(
        self, policy: KernelPolicy, current: Device, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> CachedCall | CachedRefusal | None:
        """Return what was chosen for such a call, if it may be computed in the same way now.

        Args:
            policy: What the caller allows.
            current: The current device.
            args: The arguments; the first one is a tensor.
            kwargs: More of them.
        """
        try:
            entry = self._known.get(_key(policy, args, kwargs))
        except TypeError:  # something that is no part of a kind
            return None
        if entry is None or entry.device.gone:
            return None
        # Whether a scope names another device is for the long way to say.
        is_outside = innermost.get() is OUTSIDE
        return entry if is_outside or current.memory_device is entry.device else None

    def remember(
        self,
        policy: KernelPolicy,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        images: Sequence[Any],
        device: Device,
        plan: Plan,
    ) -> None:
        """Compute such calls in the same way from now on, where they can be told by their kind.

        Args:
            policy: What the caller allows.
            args: The arguments.
            kwargs: More of them.
            images: Those that are images.
            device: Where they are.
            plan: How this call is computed.
        """
        places = tuple(place for place, value in enumerate(args) if type(value) is type(args[0]))
        tensors = [args[place] for place in places]
        if len(tensors) == len(images) and all(map(operator.is_, tensors, images)):
            self._keep(policy, args, kwargs, CachedCall(device, plan, places))

    def remember_refusal(
        self,
        policy: KernelPolicy,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        device: Device,
        reason: str,
    ) -> None:
        """Leave such calls to OpenCV from now on, without asking why anew.

        Args:
            policy: What the caller allows.
            args: The arguments, without a place for the result; the first one is a tensor.
            kwargs: More of them.
            device: Where it is.
            reason: Why no kernel computes this call.
        """
        self._keep(policy, args, kwargs, CachedRefusal(device, reason))

    def _keep(
        self,
        policy: KernelPolicy,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        entry: CachedCall | CachedRefusal,
    ) -> None:
        try:
            key = _key(policy, args, kwargs)
            hash(key)
        except TypeError:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = entry


def _key(policy: KernelPolicy, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    key: list[Any] = [policy.label, policy.accepted, settings()]
    tensor = type(args[0])
    for value in args:
        if type(value) is tensor:
            key += (value.shape, value.dtype, value.device)
        elif value is None or type(value) is int:
            key.append(value)
        else:
            key.append(cache_key(value))
    for name, value in kwargs.items():
        key += (name, cache_key(value))
    return tuple(key)


# By OpenCV's name of the function.
dispatch_caches: defaultdict[str, DispatchCache] = defaultdict(DispatchCache)
