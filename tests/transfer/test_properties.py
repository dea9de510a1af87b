"""Properties of moving any structure, and the same answer as torch's pytree and optree give."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import optree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devicecore.transfer import tensors_to_device

torch = pytest.importorskip("torch")
pytree = pytest.importorskip("torch.utils._pytree")

Point = namedtuple("Point", "x y")  # noqa: PYI024 - the plain form

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
# A few tensors, so that one structure often holds the same one twice.
TENSORS = [torch.zeros(3), torch.ones(2, 2), torch.arange(5), torch.zeros(0), torch.zeros(2).bool()]
LEAVES = SCALARS | st.sampled_from(TENSORS)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    items = st.lists(inner, max_size=4)
    named = st.dictionaries(st.text(max_size=2), inner, max_size=4)
    return (
        items
        | items.map(tuple)
        | items.map(deque)
        | named
        | named.map(OrderedDict)
        | named.map(lambda found: defaultdict(int, found))
        | st.builds(Point, inner, inner)
    )


STRUCTURES = st.recursive(LEAVES, containers, max_leaves=25)


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


@given(STRUCTURES)
def test_it_is_what_pytree_would_move(value: Any) -> None:
    leaves, shape = pytree.tree_flatten(value)
    moved, moved_shape = pytree.tree_flatten(tensors_to_device(value, "meta"))
    assert moved_shape == shape
    for old, new in zip(leaves, moved, strict=True):
        if is_tensor(old):
            assert new.device.type == "meta"
            assert (new.shape, new.dtype) == (old.shape, old.dtype)
        else:
            assert new is old


@given(STRUCTURES)
def test_it_is_what_optree_would_move(value: Any) -> None:
    leaves, shape = optree.tree_flatten(value, none_is_leaf=True)
    moved, moved_shape = optree.tree_flatten(
        tensors_to_device(value, "meta", coalesce=True), none_is_leaf=True
    )
    assert moved_shape == shape
    assert [is_tensor(each) for each in moved] == [is_tensor(each) for each in leaves]
    assert all(each.device.type == "meta" for each in moved if is_tensor(each))


@given(STRUCTURES)
def test_what_was_given_is_not_changed(value: Any) -> None:
    before = pytree.tree_flatten(value)
    tensors_to_device(value, "meta")
    leaves, shape = pytree.tree_flatten(value)
    assert shape == before[1]
    assert all(new is old for new, old in zip(leaves, before[0], strict=True))
    assert all(each.device.type == "cpu" for each in leaves if is_tensor(each))


@given(STRUCTURES)
def test_where_nothing_moves_the_same_object_comes_back(value: Any) -> None:
    assert tensors_to_device(value, "cpu") is value
    moved = tensors_to_device(value, "meta")
    assert tensors_to_device(moved, "meta") is moved


@given(STRUCTURES)
def test_what_was_one_stays_one(value: Any) -> None:
    both = tensors_to_device([value, {"again": value}], "meta")
    assert both[0] is both[1]["again"]
    leaves = pytree.tree_flatten(value)[0]
    moved = pytree.tree_flatten(both[0])[0]
    pairs = {(id(old), id(new)) for old, new in zip(leaves, moved, strict=True) if is_tensor(old)}
    assert len(pairs) == len({old for old, _ in pairs})
