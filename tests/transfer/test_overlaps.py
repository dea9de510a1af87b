"""Views of one memory: which are kept together, and that each keeps its values.

They are "moved" to the host here, where ``to`` copies nothing, so that values can be compared.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devicecore.transfer.memory import extents_of
from devicecore.transfer.overlaps import move_overlapping
from devicecore.transfer.request import Request
from devicecore.transfer.target import target_of

torch = pytest.importorskip("torch")

SIZE = 64


def together(tensors: list[Any]) -> dict[int, Any]:
    return move_overlapping(tensors, extents_of(tensors), Request(target_of("cpu")))


@st.composite
def views(draw: st.DrawFn) -> Any:
    """Return a view of any shape, strides and element type of some memory."""
    dtype = getattr(torch, draw(st.sampled_from(["float32", "int16", "uint8", "complex64"])))
    length = SIZE // dtype.itemsize
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    strides = [draw(st.integers(0, 4)) for _ in shape]
    reach = sum(max(size - 1, 0) * stride for size, stride in zip(shape, strides, strict=True))
    if reach >= length:
        shape, strides, reach = [], [], 0
    return dtype, shape, strides, draw(st.integers(0, length - 1 - reach))


@given(st.lists(views(), min_size=1, max_size=8))
def test_values_shapes_and_strides_stay(kinds: list[Any]) -> None:
    memory = torch.arange(SIZE, dtype=torch.uint8)
    tensors = [
        memory.view(dtype).as_strided(shape, strides, offset)
        for dtype, shape, strides, offset in kinds
    ]
    for position, moved in together(tensors).items():
        tensor = tensors[position]
        assert (moved.shape, moved.stride(), moved.dtype) == (
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
        )
        assert (
            torch.equal(torch.view_as_real(moved), torch.view_as_real(tensor))
            if (moved.is_complex())
            else torch.equal(moved, tensor)
        )
        assert moved.data_ptr() == tensor.data_ptr()  # the same element of the same memory


def test_tensors_of_their_own_are_left_to_others() -> None:
    assert together([torch.zeros(4), torch.zeros(4), torch.zeros(4, 4).t()]) == {}


def test_halves_are_left_to_others_and_what_overlaps_is_not() -> None:
    base = torch.zeros(8)
    assert together([base[:4], base[4:]]) == {}
    assert sorted(together([base[:5], base[4:], torch.zeros(3)])) == [0, 1]


def test_a_chain_of_overlaps_is_one_group() -> None:
    base = torch.zeros(30)
    moved = together([base[20:30], base[0:11], base[10:21]])
    assert len({each.untyped_storage()._cdata for each in moved.values()}) == 1


def test_an_expanded_one_is_taken_alone() -> None:
    assert list(together([torch.zeros(3, 1).expand(3, 5), torch.zeros(2)])) == [0]


def test_what_starts_between_two_elements_is_left_to_others() -> None:
    memory = torch.zeros(16, dtype=torch.uint8)
    floats = memory[4:12].view(torch.float32)
    assert together([memory[1:9], floats]) == {}
