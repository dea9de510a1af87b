"""Moving structures: what is shared stays shared, cycles, any depth, and where an error was."""

from __future__ import annotations

import dataclasses
import enum
import pickle
from array import array
from collections import Counter, UserDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from devicecore.errors import DeviceCoreError, TransferError
from devicecore.transfer import register_container, tensors_to_device, unregister_container

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Plain:
    x: Any
    items: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any


class Unmakeable(Mapping[str, Any]):
    """A mapping whose values are nowhere in its attributes, and whose constructor takes more."""

    def __init__(self, items: Any, needed: str) -> None:
        self._get: Callable[[str], Any] = dict(items).__getitem__
        self._names = [*items][: len(needed)]

    def __getitem__(self, key: str) -> Any:
        return self._get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def t() -> Any:
    return torch.arange(3.0)


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        "text",
        b"bytes",
        None,
        Colour.RED,
        range(3),
        memoryview(b"abc"),
        array("d", [1.0]),
        torch.float32,
        torch.Size([1, 2]),
        torch.device("cpu"),
        Counter("aab"),
        {1, 2},
        object(),
        print,
        dict,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_holds_no_tensor_stays_itself(value: Any) -> None:
    assert tensors_to_device(value, "meta") is value
    both = tensors_to_device([value, t()], "meta")
    assert both[0] is value
    assert both[1].device.type == "meta"


def test_a_generator_is_not_consumed() -> None:
    generator = (each for each in [1, 2])
    assert tensors_to_device([generator, t()], "meta")[0] is generator
    assert list(generator) == [1, 2]


def test_empty_containers_stay_themselves() -> None:
    value: list[Any] = [[], {}, (), set(), t()]
    moved = tensors_to_device(value, "meta")
    assert all(moved[index] is value[index] for index in range(4))


def test_what_does_not_change_is_shared_with_what_was_given() -> None:
    value = {"moves": [t()], "stays": [1, {"a": 2}]}
    moved = tensors_to_device(value, "meta")
    assert moved["stays"] is value["stays"]
    assert moved["moves"] is not value["moves"]


def test_shared_references_stay_shared() -> None:
    tensor, inner = t(), [t()]
    moved = tensors_to_device({"a": tensor, "b": [tensor], "c": inner, "d": (inner,)}, "meta")
    assert moved["a"] is moved["b"][0]
    assert moved["c"] is moved["d"][0]


def test_cycles_close() -> None:
    value: dict[str, Any] = {"x": t(), "list": []}
    value["list"].append(value)
    value["tuple"] = (value, Plain(value))
    moved = tensors_to_device(value, "meta")
    assert moved is not value
    assert moved["list"][0] is moved
    assert moved["tuple"][0] is moved
    assert moved["tuple"][1].x is moved
    assert moved["x"].device.type == "meta"
    assert value["list"][0] is value


def test_cycles_close_through_what_is_made_as_a_whole() -> None:
    inner: list[Any] = [t()]
    outer = (inner, frozenset({Pair(t(), 1)}))
    inner.append([outer, Pair(outer, inner)])
    moved = tensors_to_device(outer, "meta")
    assert type(moved) is tuple
    assert moved[0][1][0] is moved
    assert moved[0][1][1].x is moved
    assert moved[0][1][1].y is moved[0]
    assert moved[0][0].device.type == "meta"
    assert inner[1][0] is outer


def test_a_mapping_may_hold_itself() -> None:
    value: UserDict[str, Any] = UserDict({"x": t()})
    value["self"] = value
    moved = tensors_to_device(value, "meta")
    assert moved["self"] is moved


def test_a_cycle_without_tensors_stays_itself() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert tensors_to_device(value, "meta") is value
    assert tensors_to_device([value, t()], "meta")[0] is value


@pytest.mark.parametrize(
    "shell",
    [lambda inner: [inner], lambda inner: {"a": inner}, Frozen],
    ids=["list", "dict", "data class"],
)
def test_any_depth(shell: Callable[[Any], Any]) -> None:
    value: Any = t()
    for _ in range(100_000):
        value = shell(value)
    moved = tensors_to_device(value, "meta")
    again, depth = moved, 0
    while not isinstance(again, torch.Tensor):
        again = again.x if isinstance(again, Frozen) else next(iter(_values(again)))
        depth += 1
    assert depth == 100_000
    assert again.device.type == "meta"
    _unwind(value)
    _unwind(moved)


def _values(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


def _unwind(value: Any) -> None:
    """Take a deep structure apart: an object that ends may end all it holds by recursion."""
    while not isinstance(value, torch.Tensor):
        inner = value.x if isinstance(value, Frozen) else next(iter(_values(value)))
        if isinstance(value, Frozen):
            object.__setattr__(value, "x", None)
        else:
            value.clear()
        value = inner


def test_what_cannot_be_made_anew_is_named() -> None:
    value = Unmakeable({"a": 1}, "needed")
    assert tensors_to_device(value, "meta") is value
    with pytest.raises(TransferError) as caught:
        tensors_to_device({"batch": [Unmakeable({"a": t()}, "needed")]}, "meta")
    assert caught.value.path == "data['batch'][0]"
    assert "register_container" in str(caught.value)


class Hostile:
    """Says that it can be taken apart, and then cannot."""


def hostile_parts(value: Any) -> Any:
    raise ZeroDivisionError(value)


def test_what_cannot_be_looked_into_is_named() -> None:
    register_container(Hostile, hostile_parts, lambda *_: Hostile())
    try:
        with pytest.raises(
            TransferError, match=r"data\.items\[1\]\[0\] cannot be moved: a Hostile"
        ):
            tensors_to_device(Plain(t(), [0, (Hostile(),)]), "meta")
    finally:
        unregister_container(Hostile)


def test_an_error_says_where_it_is() -> None:
    bad = torch.empty(2, device="meta")  # without values, so it can go nowhere
    with pytest.raises(DeviceCoreError) as caught:
        tensors_to_device(Plain(0, [0, 1, 2, Pair({"k": bad}, 1)]), "cpu")
    assert isinstance(caught.value, TransferError)
    assert caught.value.path == "data.items[3].x['k']"


class Proxy:
    """Says that it is of the class of what it stands for, as lazy objects do."""

    def __init__(self, target: Any) -> None:
        self._target = target

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._target)


def test_a_proxy_is_left_alone_whatever_it_stands_for() -> None:
    value = [Proxy([t()]), Proxy(t()), Proxy({"a": 1}), t()]
    moved = tensors_to_device(value, "meta")
    assert all(moved[index] is value[index] for index in range(3))
    assert moved[3].device.type == "meta"


def test_the_error_is_a_type_error_that_pickles() -> None:
    error = pickle.loads(pickle.dumps(TransferError("data[0]", "why", "fix")))
    assert isinstance(error, TransferError)
    assert issubclass(TransferError, DeviceCoreError)
    assert issubclass(TransferError, TypeError)
    assert (error.path, error.reason, error.fix) == ("data[0]", "why", "fix")
    assert str(error) == "data[0] cannot be moved: why; fix"


def test_a_long_way_is_cut_in_the_middle() -> None:
    value: Any = torch.empty(2, device="meta")
    for _ in range(100_000):
        value = [value]
    with pytest.raises(TransferError) as caught:
        tensors_to_device({"deep": value}, "cpu")
    assert caught.value.path.startswith("data['deep'][0][0]")
    assert "…" in caught.value.path
    assert len(caught.value.path) < 200
    _unwind(value)
