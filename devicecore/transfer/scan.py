"""The walk through a structure: which containers it has, and which leaves lie elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.errors import TransferError
from devicecore.frameworks import class_in
from devicecore.transfer.containers import Rule
from devicecore.transfer.kinds import (
    KNOWN,
    NUMPY_ARRAYS,
    OPAQUE,
    PLAIN,
    TORCH_TENSORS,
    default_kinds,
)
from devicecore.transfer.object_arrays import ObjectArrayRule, object_parts
from devicecore.transfer.scan_result import ScanResult
from devicecore.transfer.to_method import ObjectsWithTo
from devicecore.transfer.torch_leaves import without_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.request import Request

_NEW = object()
_OBJECT_ARRAY = ObjectArrayRule()


def scan(data: Any, request: Request) -> ScanResult:
    """Walk through *data*, of any depth, and say what is in it; cycles are no problem.

    Raises:
        TransferError: A container cannot be looked into.
    """
    found = ScanResult(data)
    default_kinds().refresh()
    if sys.modules.get("torch") is not None:
        with without_modes():
            _walk(found, request)
    else:
        _walk(found, request)
    return found


def _walk(found: ScanResult, request: Request) -> None:
    # Written for speed: a batch can have thousands of leaves, most often with nothing to do.
    tensor = class_in("torch", "Tensor")
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


def _look(value: Any, rule: Any, found: ScanResult, request: Request) -> Sequence[Any]:
    """Take a container or a leaf down, and return what is in it."""
    if rule is _NEW:
        rule = default_kinds().of(value)
        if rule is None:
            return ()
    key = id(value)
    if key in found.containers:
        return ()
    if rule is NUMPY_ARRAYS and value.dtype.hasobject and _holds_others(value, request):
        rule = _OBJECT_ARRAY
    if not isinstance(rule, Rule):
        _take_down(value, rule, found, request)
        return ()
    try:
        children = rule.children(value)
    except Exception as error:
        reason = f"a {type(value).__qualname__} cannot be looked into ({error!r})"
        raise TransferError(found.path_to(value), reason, _REGISTER) from error
    found.containers[key] = (value, rule, children)
    if isinstance(value, dict) and not PLAIN.issuperset(map(type, dict.__iter__(value))):
        found.kept[key] = (value, tuple(dict.__iter__(value)))
    return children


def _take_down(value: Any, kind: Any, found: ScanResult, request: Request) -> None:
    """Take down what is no container: a leaf, or an object of which nobody knows how it is made."""
    if kind is OPAQUE or (isinstance(kind, ObjectsWithTo) and kind.leaves_alone(value)):
        found.kept[id(value)] = (value, (value,))
    elif kind.is_elsewhere(value, request):
        found.leaves.setdefault(kind, {})[id(value)] = value


def _holds_others(array: Any, request: Request) -> bool:
    """Return whether an array of objects is a container; one of texts, say, cannot be a tensor."""
    if request.arrays == "leave":
        return True
    parts = object_parts(array)
    return any(not PLAIN.issuperset(map(type, part.ravel())) for part in parts)


_REGISTER = "say how with devicecore.transfer.register_container"
