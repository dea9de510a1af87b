"""Tensors in objects that nobody knows how to make: left where they are, and in the ledger."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import itertools
import logging
import threading
import uuid
import weakref
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import tensors_to_device
from devicecore.errors import FallbackForbiddenError
from devicecore.ledger import default_ledger

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _empty_ledger() -> Iterator[None]:
    default_ledger().clear()
    yield
    default_ledger().clear()


def t() -> Any:
    return torch.ones(2)


def recorded() -> list[str]:
    return [each.reason for each in default_ledger().moves() if each.op == "tensors_to_device"]


class Plain:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Slots:
    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x


class Setting(enum.Enum):
    WEIGHTS = torch.ones(2)


class Word(str):  # noqa: SLOT000 - it has attributes
    tensor: Any


class AnyTo(Plain):
    def to(self, *args: Any) -> Any:
        raise AssertionError(args)


def closure() -> Callable[[], Any]:
    tensor = t()
    return lambda: tensor


_TENSOR = torch.ones(2)


def default(x: Any = _TENSOR) -> Any:
    return x


def generator() -> Iterator[Any]:
    tensor = t()
    yield 1
    yield tensor


def started() -> Iterator[Any]:
    made = generator()
    next(made)
    return made


def word() -> Word:
    made = Word("a")
    made.tensor = t()
    return made


def structured() -> Any:
    np = pytest.importorskip("numpy")
    made = np.zeros(1, dtype=[("a", "f4"), ("x", object)])
    made["x"][0] = t()
    return made[0]


HOLDERS: dict[str, Callable[[], Any]] = {
    "object": lambda: Plain(x=t()),
    "deep": lambda: Plain(a=[{"b": (Plain(c={t()}),)}]),
    "slots": lambda: Slots(t()),
    "enum": lambda: Setting.WEIGHTS,
    "str": word,
    "to": lambda: AnyTo(x=t()),
    "partial": lambda: functools.partial(print, t()),
    "closure": closure,
    "default": lambda: default,
    "method": lambda: t().sum,
    "generator": started,
    "iterator": lambda: iter([t()]),
    "map": lambda: map(str, [t()]),
    "chain": lambda: itertools.chain([t()], [1]),
    "view": lambda: {"a": t()}.values(),  # noqa: PLW0108 - a new one each time
    "items": lambda: iter([{"a": t()}.items()]),
    "slice": lambda: slice(t()),
    "exception": lambda: ValueError(t()),
    "dataset": lambda: torch.utils.data.TensorDataset(t()),
    "optimizer": lambda: torch.optim.SGD([torch.nn.Parameter(t())]),
    "module": lambda: Plain(net=torch.nn.Linear(1, 1)),
    "dict key": lambda: {t(): 1},
    "tuple key": lambda: {("a", t()): 1},
    "counter": lambda: Counter([t()]),
    "structure": structured,
}


@pytest.mark.parametrize("make", HOLDERS.values(), ids=HOLDERS)
def test_the_ledger_names_the_type_and_the_path_once(make: Callable[[], Any]) -> None:
    data = {"other": t(), "odd": [make() for _ in range(3)]}
    for _ in range(2):
        moved = tensors_to_device(data, "meta")
        assert moved["odd"] is data["odd"]
        assert moved["other"].device.type == "meta"
    (entry,) = recorded()
    kind = type(data["odd"][0])
    assert f"{kind.__module__}.{kind.__qualname__} (data['odd'][0])" in entry
    (move,) = default_ledger().moves()
    assert (move.source, move.target) == ("meta", "cpu")


@pytest.mark.parametrize("make", HOLDERS.values(), ids=HOLDERS)
def test_what_is_there_already_is_not_recorded(make: Callable[[], Any]) -> None:
    data = [make()]
    assert tensors_to_device(data, "cpu") is data
    assert not recorded()


def test_one_entry_for_each_class_wherever_it_lies() -> None:
    kind = type("Wandering", (Plain,), {})
    tensors_to_device([kind(x=1), kind(x=t())], "meta")
    tensors_to_device([1, 2, kind(x=t())], "meta")
    tensors_to_device([Slots(t())], "meta")
    assert len(recorded()) == 2
    assert "Wandering (data[1])" in recorded()[0]


def test_a_ledger_that_forbids_it_stops_the_transfer_each_time() -> None:
    for _ in range(2):
        with default_ledger().limited_to(0), pytest.raises(FallbackForbiddenError, match="Plain"):
            tensors_to_device([Plain(x=t())], "meta")


def test_what_holds_no_tensor_of_its_own_is_not_recorded() -> None:
    tensor = t()
    held = Plain(tensor=tensor)
    names = weakref.WeakValueDictionary(held=held)
    config = Plain(rate=0.1, names=["a"], path=Path("a"), nested=Plain(x=None))
    config.__dict__["me"] = config
    others: list[Any] = [
        *(dt.date(2000, 1, 1), decimal.Decimal(1), Path("a"), uuid.uuid4(), 1 + 2j, b"", "a"),
        *(torch.float32, torch.device("cpu"), torch.Generator(), torch.Size([1]), len, print),
        *(logging.getLogger("a"), threading.Lock(), threading.current_thread(), torch, Plain),
        *(weakref.ref(held), names, weakref.proxy(held), range(3), iter([1]), object(), config),
        *(Setting, functools.partial(print, 1), slice(1), recorded, {("a", 1): 2}),
    ]
    data = [*others, tensor]
    moved = tensors_to_device(data, "meta")
    assert all(new is old for new, old in zip(moved[:-1], others, strict=True))
    assert not recorded()


def test_objects_whose_tensors_are_there_are_searched_each_time() -> None:
    kind = type("Often", (Plain,), {})
    for _ in range(30):
        tensors_to_device([kind(x=t(), names=list(range(1_000)))], "cpu")
    tensors_to_device([kind(x=t())], "meta")
    assert len(recorded()) == 1


def test_a_search_has_bounds() -> None:
    kind = type("Large", (Plain,), {})
    large = kind(names=list(range(1_000_000)), x=None)
    for _ in range(30):
        tensors_to_device([large], "meta")
    tensors_to_device([kind(x=t())], "meta")
    assert not recorded()  # it is searched no more
