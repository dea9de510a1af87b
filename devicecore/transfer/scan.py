"""The walk through a structure: which containers it has, and which leaves lie elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import TransferError
from devicecore.transfer.containers import Rule
from devicecore.transfer.kinds import KNOWN, TORCH_TENSORS, Kinds
from devicecore.transfer.torch_leaves import without_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.request import LeafKind, Request

_kinds = Kinds()
_NEW = object()
_LONGEST_PATH = 40  # in steps; of a longer one, the middle is left out


@frozen
class Found:
    """What a walk has found. All keys are ids of objects that are kept alive here.

    Attributes:
        root: The structure.
        containers: Each container once: itself, its rule and what it holds.
        leaves: By their kind, each leaf that lies elsewhere once.
    """

    root: Any
    containers: dict[int, tuple[Any, Rule, Sequence[Any]]] = field(factory=dict)
    leaves: dict[LeafKind, dict[int, Any]] = field(factory=dict)

    def path_to(self, value: Any) -> str:
        """Return how one writes the way from the root, called ``data``, to *value*."""
        came: dict[int, tuple[Any, int] | None] = {id(self.root): None}
        waiting = [self.root]
        for container in waiting:
            known = self.containers.get(id(container))
            for position, child in enumerate(known[2] if known else ()):
                key = id(child)
                if key not in came and (key in self.containers or child is value):
                    came[key] = (container, position)
                    waiting.append(child)
            if id(value) in came:
                break
        steps: list[str] = []
        way = came.get(id(value))
        while way is not None:
            container, position = way
            steps.append(self.containers[id(container)][1].step(container, position))
            way = came[id(container)]
        if len(steps) > _LONGEST_PATH:
            steps[_LONGEST_PATH // 2 : -_LONGEST_PATH // 2] = ["…"]
        return "data" + "".join(reversed(steps))


def scan(data: Any, request: Request) -> Found:
    """Walk through *data*, of any depth, and say what is in it; cycles are no problem.

    Raises:
        TransferError: A container cannot be looked into.
    """
    found = Found(data)
    _kinds.refresh()
    if sys.modules.get("torch") is not None:
        with without_modes():
            _walk(found, request)
    else:
        _walk(found, request)
    return found


def _walk(found: Found, request: Request) -> None:
    # Written for speed: a batch can have thousands of leaves, most often with nothing to do.
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    here = request.target.torch_device
    leaves_host = here is None or here.type != "cpu"
    elsewhere: dict[int, Any] = {}
    waiting: list[Sequence[Any]] = [(found.root,)]
    while waiting:
        for value in waiting.pop():
            kind = type(value)
            if kind is tensor:
                # Asked first, as making the device to compare takes as long as all the rest.
                if leaves_host if value.is_cpu else value.device != here:
                    elsewhere[id(value)] = value
                continue
            rule = KNOWN.get(kind, _NEW)
            if rule is not None:
                children = _look(value, rule, found, request)
                if children:
                    waiting.append(children)
    if elsewhere:
        found.leaves.setdefault(TORCH_TENSORS, {}).update(elsewhere)


def _look(value: Any, rule: Any, found: Found, request: Request) -> Sequence[Any]:
    """Take a container or a leaf down, and return what is in it."""
    if rule is _NEW:
        rule = _kinds.of(value)
        if rule is None:
            return ()
    key = id(value)
    if key in found.containers:
        return ()
    if not isinstance(rule, Rule):
        if rule.is_elsewhere(value, request):
            found.leaves.setdefault(rule, {})[key] = value
        return ()
    try:
        children = rule.children(value)
    except Exception as error:
        reason = f"a {type(value).__qualname__} cannot be looked into ({error!r})"
        raise TransferError(found.path_to(value), reason, _REGISTER) from error
    found.containers[key] = (value, rule, children)
    return children


_REGISTER = "say how with devicecore.transfer.register_container"
