"""Which kind a value is: a container and its rule, a leaf and its kind, or neither."""

from __future__ import annotations

import enum
import inspect
import sys
import types
import weakref
from collections import UserList
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import class_in, framework_of_arrays, known_frameworks
from devicecore.frameworks.base.leaf import LeafKind
from devicecore.transfer.containers import BUILTIN_RULES, Rule
from devicecore.transfer.mappings import MappingRule
from devicecore.transfer.models import model_rule
from devicecore.transfer.objects import (
    BASES,
    CacheLayerRule,
    ObjectRule,
    PackedSequenceRule,
    SubclassRule,
)
from devicecore.transfer.other_leaves import Modules, NumpyArrays
from devicecore.transfer.registrations import default_registrations, pytree_rule
from devicecore.transfer.to_method import ObjectsWithTo
from devicecore.transfer.torch_leaves import TorchTensors

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH_TENSORS = TorchTensors()
NUMPY_ARRAYS = NumpyArrays()
_MODULES = Modules()
_OBJECT = ObjectRule()
_MAPPING = MappingRule()
_PACKED_SEQUENCE = PackedSequenceRule()
_SUBCLASSES: dict[type[Any], Rule] = {base: SubclassRule(base) for base in BASES}
_CACHE_LAYER = CacheLayerRule()
_WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary)
_CACHES = "transformers.cache_utils"


class _Opaque(enum.Enum):
    """The kind of objects of unknown classes, which may hold anything and cannot be made anew."""

    OPAQUE = "opaque"


OPAQUE = _Opaque.OPAQUE
Kind = Rule | LeafKind | _Opaque | None

# What holds no tensors, by its exact type.
PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, bytearray})
KNOWN: dict[type, Kind] = {
    **BUILTIN_RULES,
    **dict.fromkeys((*PLAIN, type, range, memoryview, types.ModuleType)),
}


class Kinds:
    """The kinds of other types, found out once for each type."""

    def __init__(self) -> None:
        self._found: weakref.WeakKeyDictionary[type, Kind] = weakref.WeakKeyDictionary()
        self._state: tuple[object, ...] = ()

    def refresh(self) -> None:
        """Forget everything if somebody has registered something or imported a framework."""
        nodes = getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", ())
        entries = getattr(sys.modules.get("optree.registry"), "_NODETYPE_REGISTRY", ())
        state = (
            default_registrations().generation,
            len(nodes),
            len(entries),
            *(name in sys.modules for name in known_frameworks()),
        )
        if state != self._state:
            self._found = weakref.WeakKeyDictionary()
            self._state = state

    def of(self, value: Any) -> Kind:
        """Return the kind of *value*."""
        kind = type(value)
        try:
            return self._found[kind]
        except KeyError:
            found = self._found[kind] = _choose(kind)
            return found


_default = Kinds()


def default_kinds() -> Kinds:
    """Return the kinds of this process."""
    return _default


def kind_of(value: Any) -> Kind:
    """Return the kind of any value."""
    kind = type(value)
    return KNOWN[kind] if kind in KNOWN else _default.of(value)


def _taken_apart_or_moved(value: Any) -> Rule | LeafKind | None:
    kind = kind_of(value)
    return None if kind is OPAQUE else kind


_WITH_TO = ObjectsWithTo(_taken_apart_or_moved)
_WITH_TO_AND_DEVICE = ObjectsWithTo(_taken_apart_or_moved, has_device=True)


def _choose(kind: type) -> Kind:
    # By the type alone, as that is what is remembered: a proxy is of no kind, whatever it says.
    if issubclass(kind, type):
        return None
    if issubclass(kind, enum.Enum):
        return _opaque(kind)
    for find in _FINDERS:
        if (found := find(kind)) is not None:
            return found
    return None


def _registered(kind: type) -> Kind:
    return default_registrations().find(kind)


def _leaf(kind: type) -> Kind:
    if issubclass(kind, class_in("torch", "Tensor")):
        return TORCH_TENSORS
    if issubclass(kind, class_in("numpy", "ndarray")):
        return NUMPY_ARRAYS
    if issubclass(kind, class_in("torch.nn", "Module")):
        return _MODULES
    known = framework_of_arrays(kind)
    return None if known is None else known.leaf


def _special(kind: type) -> Kind:
    if issubclass(kind, class_in("torch.nn.utils.rnn", "PackedSequence")):
        return _PACKED_SEQUENCE
    # Transformers' caches of keys and values have no `to`, and nobody registers them.
    if issubclass(kind, class_in(_CACHES, "CacheLayerMixin")):
        return _CACHE_LAYER
    if issubclass(kind, class_in(_CACHES, "Cache")):
        return _OBJECT
    return pytree_rule(kind)


def _subclass(kind: type) -> Kind:
    return next((_SUBCLASSES[base] for base in BASES if issubclass(kind, base)), None)


def _object(kind: type) -> Kind:
    if issubclass(kind, _WEAK):  # what it has belongs to whatever else holds it
        return None
    if issubclass(kind, Mapping):
        return _MAPPING
    if (rule := model_rule(kind)) is not None:
        return rule
    plain = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")
    if plain or issubclass(kind, (UserList, types.SimpleNamespace)):
        return _OBJECT
    return None


def _with_to(kind: type) -> Kind:
    """Return the kind of objects whose ``to`` says that it is about devices, or may be."""
    method = getattr(kind, "to", None)
    if not callable(method):
        return None
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return None
    if "device" in parameters:
        return _WITH_TO
    takes_anything = any(each.kind is each.VAR_POSITIONAL for each in parameters.values())
    return _WITH_TO_AND_DEVICE if takes_anything else None


def _opaque(kind: type) -> Kind:
    """Return `OPAQUE` unless no object of this class holds others, or none that are its own."""
    is_structure = issubclass(kind, class_in("numpy", "void"))
    if not (kind.__flags__ & _COLLECTED or is_structure) or issubclass(kind, _OF_OTHERS):
        return None
    home = str(kind.__module__)
    top = home.partition(".")[0]
    if top in _OWN or (top in sys.stdlib_module_names and home not in _CARRIERS):
        return None
    return OPAQUE


_COLLECTED = 1 << 14  # Py_TPFLAGS_HAVE_GC: what can hold other objects has it
_OF_OTHERS: tuple[type, ...] = (
    *_WEAK,
    weakref.ref,
    weakref.ProxyType,
    weakref.CallableProxyType,
    types.FrameType,
    types.TracebackType,
)
_OWN = frozenset({"devicecore", "devicecore_factories"})
# Of Python's own objects, those that are about what somebody put into them; loggers, threads and
# the like belong to everybody.
_CARRIERS = frozenset(
    {
        *("argparse", "builtins", "collections", "concurrent.futures._base", "functools"),
        *("itertools", "operator", "queue", "_queue", "types"),
    }
)


_FINDERS: tuple[Callable[[type], Kind], ...] = (
    _registered,
    _leaf,
    _special,
    _subclass,
    _object,
    _with_to,
    _opaque,
)
