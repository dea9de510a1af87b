"""What a transfer leaves behind, inside of objects that it cannot make anew: the ledger says so.

Objects of unknown classes are not rebuilt by guesswork. Whether one holds a tensor is looked for
with bounds, since it may reach anything: among the first values in it, and no more in objects of a
class in which often enough none was found.
"""

from __future__ import annotations

import gc
import weakref
from itertools import chain, islice
from types import FunctionType
from typing import TYPE_CHECKING, Any

from attrs import Factory, define

from devicecore.frameworks import class_in
from devicecore.frameworks.base.leaf import LeafKind
from devicecore.ledger import default_ledger
from devicecore.transfer.object_arrays import object_parts
from devicecore.transfer.tensors import kind_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from devicecore.transfer.request import Request
    from devicecore.transfer.scan_result import ScanResult

_MOST_VALUES = 1_000  # that one search looks at
_ENOUGH_VALUES = 10_000  # of a class, without a tensor in them
_PLAIN = (list, tuple, set, frozenset)


@define
class _Searched:
    """What is known of the objects of one class.

    Attributes:
        values: How many values in them were looked at in vain.
        reason: What the ledger was told of the first that held a tensor.
    """

    values: int = 0
    reason: str = ""


@define
class Searches:
    """The searches in objects of unknown classes, over all transfers of this process."""

    _known: weakref.WeakKeyDictionary[type, _Searched] = Factory(weakref.WeakKeyDictionary)

    def record(self, found: ScanResult, request: Request, kind_of: Callable[[Any], Any]) -> None:
        """Write into the ledger what *found* leaves behind, once for each class.

        Raises:
            FallbackForbiddenError: The ledger allows no more.
        """
        done: set[type] = set()
        for value, held in found.kept.values():
            kind = type(value)
            if kind in done:
                continue
            known = self._known.setdefault(kind, _Searched())
            if not known.reason and known.values >= _ENOUGH_VALUES:
                continue
            leaf, seen = _first_elsewhere(held, request, kind_of)
            if leaf is None:
                known.values += seen
                continue
            done.add(kind)
            ledger = default_ledger()
            if all(move.reason != known.reason for move in ledger.moves()):
                known.reason = _reason(value, held, found.path_to(value))
            ledger.record(_OPERATION, request.target.name, _place_of(leaf), known.reason)


def _reason(value: Any, held: Sequence[Any], path: str) -> str:
    what = f"a {kind_name(value)} ({path})"
    if held[0] is not value:
        return f"tensors in the keys of {what} stay where they are"
    fix = "move them yourself"
    if type(value).__module__ != "builtins":
        fix = f"say how it is made with devicecore.transfer.register_container, or {fix}"
    return f"tensors in {what} stay where they are: {fix}"


_OPERATION = "tensors_to_device"
_searches = Searches()


def record_left_behind(found: ScanResult, request: Request, kind_of: Callable[[Any], Any]) -> None:
    """Write into the ledger which tensors in unknown objects are elsewhere and stay there.

    Raises:
        FallbackForbiddenError: The ledger allows no more.
    """
    _searches.record(found, request, kind_of)


def _first_elsewhere(
    held: Sequence[Any], request: Request, kind_of: Callable[[Any], Any]
) -> tuple[Any, int]:
    """Return the nearest leaf that is elsewhere, or None, and how many values were no use at all.

    Where there are leaves that lie where they shall, those of the next object may not.
    """
    has_leaves = False
    waiting = list(held)
    seen = {id(each) for each in waiting}
    for value in waiting:
        kind = kind_of(value)
        if kind is None:
            continue
        if isinstance(kind, LeafKind) and not kind.holds_others:
            if kind.is_elsewhere(value, request):
                return value, 0
            has_leaves = True
            continue
        for each in _parts(value, _MOST_VALUES):
            if id(each) not in seen and len(waiting) < _MOST_VALUES:
                seen.add(id(each))
                waiting.append(each)  # which also keeps it, and its id
    return None, 0 if has_leaves else len(waiting)


def _parts(value: Any, most: int) -> Iterable[Any]:
    """Return what *value* holds, without running any code of its class."""
    kind = type(value)
    if kind in _PLAIN:
        return list(islice(value, most))
    if kind is dict:
        return list(chain(islice(value.values(), most), islice(value, most)))
    if kind is FunctionType:  # not the names of its module
        cells = value.__closure__ or ()
        return [*gc.get_referents(*cells), value.__defaults__, value.__kwdefaults__, value.__dict__]
    if issubclass(kind, class_in("numpy", "ndarray")):
        return [item for part in object_parts(value) for item in islice(part.flat, most)]
    if issubclass(kind, class_in("numpy", "void")):
        return (value.item(),) if value.dtype.hasobject else ()
    return islice(gc.get_referents(value), most)


def _place_of(leaf: Any) -> str:
    for each in (leaf, *islice(getattr(leaf, "parameters", tuple)(), 1)):
        if (where := getattr(each, "device", None)) is not None:
            return str(where)
    return "where it is"
