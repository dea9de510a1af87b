"""Mappings that are no dicts: read if they hold their values, left alone if they load them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.errors import TransferError
from devicecore.transfer import tensors_to_device

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def t() -> Any:
    return torch.arange(3.0)


class Lazy(Mapping[str, Any]):
    """Loads each value when it is asked for, and keeps it if it is told to."""

    def __init__(self, names: str, keeps: bool) -> None:
        self.names = names
        self.keeps = keeps
        self.loaded: list[str] = []
        self.kept: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key in self.kept:
            return self.kept[key]
        self.loaded.append(key)
        made = t()
        if self.keeps:
            self.kept[key] = made
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_mapping_that_loads_its_values_is_not_read_as_a_whole(keeps: bool) -> None:
    value = {"lazy": Lazy("abcdef", keeps)}
    assert tensors_to_device(value, "cpu") is value
    assert set(value["lazy"].loaded) <= {"a"}
    value = {"lazy": Lazy("abcdef", keeps)}
    value["lazy"]["a"]
    moved = tensors_to_device({"x": t(), **value}, "meta")
    assert set(value["lazy"].loaded) <= {"a", "b"}
    assert set(moved["lazy"]) == set("abcdef")


def test_a_mapping_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(tmp_path / "a.npz", x=np.ones(2), y=np.ones(2))
    with np.load(tmp_path / "a.npz") as loaded:
        moved = tensors_to_device([loaded, t()], "meta", arrays="tensors")
        assert moved[0] is loaded
    value = [loaded, t()]
    assert tensors_to_device(value, "cpu") is value
    moved = tensors_to_device(value, "meta")
    assert moved[0] is loaded
    assert moved[1].device.type == "meta"


def test_what_holds_its_values_weakly_is_left_alone() -> None:
    tensor = t()
    value = weakref.WeakValueDictionary({"a": tensor})
    assert tensors_to_device(value, "meta") is value
    keys = weakref.WeakKeyDictionary({tensor: t()})
    assert tensors_to_device([keys], "meta")[0] is keys
    moved = tensors_to_device([value, tensor], "meta")
    assert moved[0]["a"] is tensor
    assert moved[1].device.type == "meta"


class Bound(Mapping[str, Any]):
    """Holds its values, and reads them past any copy of its attributes."""

    def __init__(self, items: Any) -> None:
        self.items_kept = dict(items)
        self.read: Callable[[str], Any] = self.items_kept.__getitem__

    def __getitem__(self, key: str) -> Any:
        return self.read(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_kept)

    def __len__(self) -> int:
        return len(self.items_kept)


class Rows(Mapping[int, Any]):
    """Its values are views of what it holds."""

    def __init__(self, all_rows: Any) -> None:
        self.all_rows = all_rows

    def __getitem__(self, key: int) -> Any:
        return self.all_rows[key]

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.all_rows)))

    def __len__(self) -> int:
        return len(self.all_rows)


def test_mappings_that_read_their_values_in_other_ways() -> None:
    moved = tensors_to_device(Bound({"a": t(), "b": 1}), "meta")
    assert moved["a"].device.type == "meta"
    assert moved["b"] == 1
    rows = Rows(torch.ones(2, 3))
    moved = tensors_to_device({"rows": rows}, "meta")["rows"]
    assert [each.device.type for each in moved.values()] == ["meta", "meta"]
    assert rows[0].device.type == "cpu"


class OwnDict(dict[str, Any]):
    """A dict of another class."""


def test_a_read_only_view_stays_one_of_the_same_mapping() -> None:
    data = OwnDict(a=t())
    shown, moved = tensors_to_device([MappingProxyType(data), data], "meta")
    assert type(moved) is OwnDict
    moved["b"] = 1
    assert shown["b"] == 1
    own: dict[str, Any] = {"a": t()}
    own["own"] = MappingProxyType(own)
    moved = tensors_to_device(own, "meta")
    assert moved["own"]["own"]["a"] is moved["a"]
    with pytest.raises(TransferError) as caught:
        tensors_to_device([MappingProxyType({"net": torch.nn.Linear(1, 1)})], "meta")
    assert caught.value.path == "data[0]['net']"
