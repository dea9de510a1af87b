"""Moving structures: every kind of container keeps its type, and nothing that was given changes.

Tensors are moved to torch's ``meta``, where a machine without accelerators can see that they moved.
"""

from __future__ import annotations

import dataclasses
from collections import (
    ChainMap,
    OrderedDict,
    UserDict,
    UserList,
    defaultdict,
    deque,
    namedtuple,
)
from collections.abc import Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import attrs
import pytest

from devicecore.transfer import tensors_to_device

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable

Pair = namedtuple("Pair", "x y")  # noqa: PYI024 - both ways of making one are tested


class Sample(NamedTuple):
    image: Any
    label: Any = 0


class OwnPair(Pair):
    def __new__(cls, both: Any) -> Self:
        return super().__new__(cls, both, both)


class OwnTuple(tuple[Any, ...]):  # noqa: SLOT001 - as people write them
    def __new__(cls, first: Any, second: Any) -> Self:
        return super().__new__(cls, (first, second))


class Named(list[Any]):
    def __init__(self, items: Any, name: str, extra: Any) -> None:
        super().__init__(items)
        self.name = name
        self.extra = extra


class Slotted(dict[str, Any]):
    __slots__ = ("extra",)
    extra: Any


class OtherConstructor(dict[str, Any]):
    def __init__(self, path: str, **items: Any) -> None:
        super().__init__(**items)
        self.path = path


class ItemsAreAttributes(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


class Refusing(dict[str, Any]):
    """What must be moved past its own methods."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise AssertionError(key)


class Ring(deque[Any]):
    """A deque of another class."""


class Kept(OrderedDict[str, Any]):
    """An OrderedDict of another class."""


class Lists(defaultdict[str, Any]):
    """A defaultdict of another class."""


class Bag(frozenset[Any]):
    """A frozenset of another class."""


class OwnMapping(Mapping[str, Any]):
    def __init__(self, *, first: Any) -> None:
        self._kept = {"first": first}

    def __getitem__(self, key: str) -> Any:
        return self._kept[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


class Made(Mapping[str, Any]):
    """A mapping whose values are nowhere in its attributes."""

    def __init__(self, items: Any) -> None:
        items = dict(items)
        self._get: Callable[[str], Any] = items.__getitem__
        self._names = list(items)

    def __getitem__(self, key: str) -> Any:
        return self._get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclasses.dataclass
class Plain:
    x: Any
    items: list[Any] = dataclasses.field(default_factory=list)
    late: Any = dataclasses.field(init=False, default=None)

    def __post_init__(self) -> None:
        self.calls = getattr(self, "calls", 0) + 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    x: Any
    y: Any = 1


@dataclasses.dataclass
class WithInitVar:
    x: Any
    scale: dataclasses.InitVar[int] = 2

    def __post_init__(self, scale: int) -> None:
        self.scaled = scale


@attrs.define
class Defined:
    x: Any
    _private: Any = None


@attrs.frozen(cache_hash=True)
class FrozenAttrs:
    x: Any


@attrs.define
class Validated:
    x: Any = attrs.field(
        validator=attrs.validators.instance_of(torch.Tensor), on_setattr=attrs.setters.frozen
    )


@dataclasses.dataclass
class Model(OrderedDict[str, Any]):
    """Looks like transformers' ModelOutput: its fields are its items too."""

    loss: Any = None
    logits: Any = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if (value := getattr(self, field.name)) is not None:
                super().__setitem__(field.name, value)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Encoding(UserDict[str, Any]):
    """Looks like transformers' BatchEncoding: it has attributes, and a ``to`` that changes it."""

    def __init__(self, data: Any, encodings: Any) -> None:
        super().__init__(data)
        self._encodings = encodings

    def __getattr__(self, item: str) -> Any:
        try:
            return self.data[item]
        except KeyError:
            raise AttributeError(item) from None

    def to(self, device: Any) -> Encoding:
        raise AssertionError(device)


def t() -> Any:
    return torch.arange(3.0)


# Each makes a value, and says which tensors are in one like it.
CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], list[Any]]]] = {
    "tensor": (t, lambda v: [v]),
    "dict": (lambda: {"b": t(), 1: t(), (2, "k"): "text", None: t()}, lambda v: [v["b"], v[1]]),
    "list": (lambda: [t(), 3, [t()]], lambda v: [v[0], v[2][0]]),
    "tuple": (lambda: (t(), "a", ()), lambda v: [v[0]]),
    "namedtuple": (lambda: Pair(t(), [t()]), lambda v: [v.x, v.y[0]]),
    "NamedTuple with defaults": (lambda: Sample([t(), t()]), lambda v: v.image),
    "namedtuple with its own __new__": (lambda: OwnPair(t()), lambda v: [v.x, v.y]),
    "return type of torch": (lambda: torch.max(torch.ones(2, 2), 0), list),
    "tuple with its own __new__": (lambda: OwnTuple(t(), t()), list),
    "list with attributes": (lambda: Named([t()], "n", t()), lambda v: [v[0], v.extra]),
    "data class": (lambda: Plain(t(), [t()]), lambda v: [v.x, v.items[0]]),
    "frozen data class": (lambda: Frozen({"a": t()}), lambda v: [v.x["a"]]),
    "data class with slots": (lambda: FrozenSlots(t()), lambda v: [v.x]),
    "data class with InitVar": (lambda: WithInitVar(t(), 5), lambda v: [v.x]),
    "attrs": (lambda: Defined(t(), [t()]), lambda v: [v.x, v._private[0]]),
    "attrs, frozen": (lambda: FrozenAttrs(t()), lambda v: [v.x]),
    "attrs, validated": (lambda: Validated(t()), lambda v: [v.x]),
    "OrderedDict": (lambda: OrderedDict(z=t(), a=t()), lambda v: list(v.values())),
    "defaultdict": (lambda: defaultdict(list, a=[t()]), lambda v: v["a"]),
    "ChainMap": (lambda: ChainMap({"a": t()}, {"b": t()}), lambda v: [v["a"], v["b"]]),
    "MappingProxyType": (lambda: MappingProxyType({"a": t()}), lambda v: [v["a"]]),
    "UserDict": (lambda: UserDict({"a": [t()]}), lambda v: v["a"]),
    "UserList": (lambda: UserList([t()]), lambda v: [v[0]]),
    "dict with slots": (lambda: Slotted(a=t()), lambda v: [v["a"]]),
    "dict with another constructor": (lambda: OtherConstructor("p", a=t()), lambda v: [v["a"]]),
    "dict of attributes": (lambda: ItemsAreAttributes(a=t()), lambda v: [v["a"], v.a]),
    "dict that refuses items": (lambda: Refusing(a=t()), lambda v: [v["a"]]),
    "mapping without a constructor": (lambda: OwnMapping(first=t()), lambda v: [v["first"]]),
    "mapping that makes its values": (lambda: Made({"a": t()}), lambda v: [v["a"]]),
    "deque": (lambda: deque([t(), t()], maxlen=2), list),
    "deque of another class": (lambda: Ring([t()], 3), list),
    "OrderedDict of another class": (lambda: Kept(z=t(), a=t()), lambda v: list(v.values())),
    "defaultdict of another class": (lambda: Lists(int, a=t()), lambda v: [v["a"]]),
    "set": (lambda: {t(), 1}, lambda v: [each for each in v if torch.is_tensor(each)]),
    "frozenset": (lambda: frozenset({t()}), list),
    "frozenset of another class": (lambda: Bag({t()}), list),
    "frozen data classes in a set": (
        lambda: frozenset({Pair(t(), 1)}),
        lambda v: [next(iter(v)).x],
    ),
    "SimpleNamespace": (lambda: SimpleNamespace(a=t()), lambda v: [v.a]),
    "ModelOutput's like": (lambda: Model(logits=t()), lambda v: [v["logits"], v.logits]),
    "BatchEncoding's like": (
        lambda: Encoding({"ids": t(), "deep": [{"x": t()}]}, "kept"),
        lambda v: [v["ids"], v.ids, v["deep"][0]["x"]],
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Any, Callable[[Any], list[Any]]]:
    make, tensors = CASES[request.param]
    return make(), tensors


def test_it_is_moved_and_keeps_its_type(case: tuple[Any, Any]) -> None:
    value, tensors = case
    before = tensors(value)
    moved = tensors_to_device(value, "meta")
    assert type(moved) is type(value)
    assert before
    assert [each.device.type for each in tensors(moved)] == ["meta"] * len(before)
    assert sorted(each.shape for each in tensors(moved)) == sorted(each.shape for each in before)


def test_what_was_given_stays_as_it_was(case: tuple[Any, Any]) -> None:
    value, tensors = case
    before = tensors(value)
    kept = dict(getattr(value, "__dict__", {}))
    tensors_to_device(value, "meta")
    after = tensors(value)
    assert {id(each) for each in after} == {id(each) for each in before}
    assert all(each.device.type == "cpu" for each in after)
    assert all(getattr(value, "__dict__", {})[name] is kept[name] for name in kept)


def test_it_is_itself_where_nothing_moves(case: tuple[Any, Any]) -> None:
    value, _ = case
    assert tensors_to_device(value, "cpu") is value
    moved = tensors_to_device(value, "meta")
    assert tensors_to_device(moved, "meta") is moved


def test_details_of_containers_stay() -> None:
    assert tensors_to_device(deque([t()], maxlen=7), "meta").maxlen == 7
    assert tensors_to_device(Ring([t()], 3), "meta").maxlen == 3
    assert tensors_to_device(defaultdict(list, a=t()), "meta").default_factory is list
    assert tensors_to_device(Lists(int, a=t()), "meta").default_factory is int
    assert tensors_to_device(Named([t()], "n", 0), "meta").name == "n"
    assert tensors_to_device(OtherConstructor("p", a=t()), "meta").path == "p"
    assert list(tensors_to_device(OrderedDict(z=t(), a=t()), "meta")) == ["z", "a"]
    assert list(tensors_to_device({"z": t(), 1: t()}, "meta")) == ["z", 1]
    assert tensors_to_device(Sample([t()]), "meta").label == 0
    assert tensors_to_device(Encoding({"a": t()}, "kept"), "meta")._encodings == "kept"
    proxy = tensors_to_device(MappingProxyType(OrderedDict(z=t(), a=1)), "meta")
    assert type(proxy.copy()) is OrderedDict
    chained = tensors_to_device(ChainMap({"a": 1}, {"a": t()}), "meta")
    assert [list(each) for each in chained.maps] == [["a"], ["a"]]


def test_a_data_class_keeps_all_its_fields() -> None:
    value = Plain(t())
    value.late = t()
    moved = tensors_to_device(value, "meta")
    assert moved.late.device.type == "meta"
    assert moved.calls == 1  # __post_init__ did not run again
    assert value.late.device.type == "cpu"
    other = tensors_to_device(WithInitVar(t(), 5), "meta")
    assert other.scaled == 5


def test_a_slot_that_is_not_set_stays_so() -> None:
    moved = tensors_to_device(Slotted(a=t()), "meta")
    with pytest.raises(AttributeError):
        moved.extra  # noqa: B018 - the access is what is tested
    value = Slotted(a=1)
    value.extra = t()
    assert tensors_to_device(value, "meta").extra.device.type == "meta"


def test_a_cached_hash_is_not_taken_along() -> None:
    value = FrozenAttrs(t())
    hash(value)
    moved = tensors_to_device(value, "meta")
    assert hash(moved) == hash(FrozenAttrs(moved.x))


def test_items_that_are_attributes_stay_the_same_thing() -> None:
    moved = tensors_to_device(ItemsAreAttributes(a=t()), "meta")
    moved.b = 2
    assert moved["b"] == 2


@dataclasses.dataclass
class Hidden:
    """Keeps its field under the name of a property, as some do to check or to compute it."""

    x: Any

    @property
    def y(self) -> Any:
        return self.__dict__["y"]


def test_an_attribute_below_a_property_is_moved() -> None:
    value = Hidden(t())
    value.__dict__["y"] = t()
    moved = tensors_to_device(value, "meta")
    assert moved.y.device.type == "meta"
    assert value.y.device.type == "cpu"


@dataclasses.dataclass
class FailureError(Exception):
    """A data class with a layout of its own in memory."""

    x: Any


def test_a_data_class_with_another_layout() -> None:
    value = FailureError(t())
    value.args = ("what happened",)
    moved = tensors_to_device(value, "meta")
    assert type(moved) is FailureError
    assert moved.x.device.type == "meta"
    assert moved.args == ("what happened",)
    assert value.x.device.type == "cpu"
