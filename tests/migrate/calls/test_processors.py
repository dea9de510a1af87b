"""What becomes of arguments and of results."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from devicecore.migrate.calls.arrays import (  # noqa: E402
    SavedContents,
    copy_arrays,
    count_pixels,
    find_arrays,
    is_array,
    is_tensor,
)
from devicecore.migrate.calls.processors import (  # noqa: E402 - after torch
    EnsureTensor,
    KeepOnDevice,
    PassThrough,
    SwapArgs,
    ToNumpy,
    process,
)
from devicecore.runtime import host_cpu  # noqa: E402

Pair = namedtuple("Pair", "first second")  # noqa: PYI024 - as programs have them


def test_ensure_tensor() -> None:
    array = np.arange(3.0)
    tensor = EnsureTensor()(array, host_cpu())
    tensor[0] = 7
    assert array[0] == 7  # where it is already, memory is shared
    assert EnsureTensor()(tensor, host_cpu()) is tensor
    assert EnsureTensor()([1, 2], host_cpu()).tolist() == [1, 2]
    assert EnsureTensor()(array[::-1], host_cpu()).tolist() == [2, 1, 7]


def test_pass_through() -> None:
    value = object()
    assert (
        PassThrough()(value) is PassThrough()(value, host_cpu()) is KeepOnDevice()(value) is value
    )


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(6)[::2],
        torch.zeros(2, requires_grad=True),
        torch.tensor(3),
        torch.zeros(0, 3),
        torch.zeros(2, dtype=torch.complex64).conj(),
        torch.ones(1, dtype=torch.uint8).expand(4),
    ],
    ids=["plain", "transposed", "strided", "with_grad", "number", "empty", "conj", "expanded"],
)
def test_arrays_of_results_are_ordinary_and_nobody_elses(tensor: Any) -> None:
    found = ToNumpy()(tensor)
    assert type(found) is np.ndarray
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert not np.shares_memory(found, tensor.detach().resolve_conj().numpy())
    assert np.array_equal(found, tensor.detach().resolve_conj().numpy())


def test_a_backend_that_returns_its_argument_does_not_give_the_callers_memory_away() -> None:
    array = np.arange(3)
    found = ToNumpy()(EnsureTensor()(array, host_cpu()))
    found[0] = 9
    assert array.tolist() == [0, 1, 2]


def test_structures_of_results_stay_what_they_are() -> None:
    one = torch.ones(2)
    result = {"a": (one, [one, "text", None]), "pair": Pair(one, 3)}
    found = ToNumpy()(result)
    assert [type(found["a"]), type(found["a"][1]), type(found["pair"])] == [tuple, list, Pair]
    assert found["a"][1][1:] == ["text", None]
    assert all(is_array(each) for each in find_arrays(found))
    values = ToNumpy()(torch.ones(2, 2).max(0))  # a sequence of torch's own
    assert type(values).__name__ == "max"
    assert values[1].tolist() == [0, 0]


def test_swap_args() -> None:
    assert SwapArgs()((1, 2, 3), {"a": 4}) == ((2, 1, 3), {"a": 4})
    assert SwapArgs(0, 2)((1, 2, 3), {}) == ((3, 2, 1), {})
    with pytest.raises(IndexError):
        SwapArgs()((1,), {})


def test_arguments_are_prepared_in_order_and_by_name() -> None:
    def marked(mark: str) -> Any:
        return lambda value, _: (mark, value)

    given_ones = (1, 2, 3), {"a": 4, "b": 5}
    found = process([marked("x"), marked("y")], {"a": marked("z")}, *given_ones, host_cpu())
    assert found == ((("x", 1), ("y", 2), 3), {"a": ("z", 4), "b": 5})
    assert process([marked("x")] * 5, {"c": marked("z")}, (1,), {}, host_cpu()) == (
        (("x", 1),),
        {},
    )


# --- values ---------------------------------------------------------------------------------------

LEAVES = st.one_of(
    st.integers(), st.text(max_size=3), st.none(), st.builds(lambda: np.zeros(2)),
    st.builds(lambda: torch.zeros(2)),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_copy_has_the_same_structure_and_its_own_arrays(value: Any) -> None:
    found = copy_arrays(value)
    assert repr(found) == repr(value)
    own, given_ones = list(find_arrays(found)), list(find_arrays(value))
    assert len(own) == len(given_ones)
    assert not {id(each) for each in own} & {id(each) for each in given_ones}
    for array in own:
        array[0] = 1
    assert all(float(array[0]) == 0 for array in given_ones)


def test_what_contains_itself_ends() -> None:
    value: list[Any] = [np.zeros(1)]
    value += [value, value[0]]
    assert len(list(find_arrays(value))) == 1


def test_no_code_of_a_program_runs_to_find_arrays() -> None:
    class Lazy(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    class Odd:
        @property
        def shape(self) -> Any:
            raise AssertionError

        def __array__(self) -> Any:
            raise AssertionError

    assert [each.shape for each in find_arrays([Odd(), Lazy([np.zeros(2)])])] == [(2,)]
    assert not is_array(Odd())
    assert not is_tensor(Odd())


def test_pixels() -> None:
    assert count_pixels((3, np.zeros((4, 5, 3))), {}) == 20
    assert count_pixels((), {"src": [np.zeros(9), np.zeros((2, 3))]}) == 6
    assert count_pixels((torch.zeros(2, 3, 4, 5),), {}) == 20
    assert count_pixels((np.zeros(7), "text"), {}) == 0


def test_contents_are_put_back_where_they_were_changed() -> None:
    array, tensor = np.arange(6.0).reshape(2, 3), torch.arange(3)
    array[0, 0] = np.nan
    fixed = np.arange(2)
    fixed.flags.writeable = False
    part = array[:, 1]
    shown = np.broadcast_to(array[0], (2, 3))  # nobody can write there, but it changes
    kept = SavedContents([shown, part, [tensor], fixed], {"array": array})
    part += 1
    tensor += 1
    kept.put_back()
    assert array.tolist()[1] == [3, 4, 5]
    assert np.isnan(array[0, 0])
    assert tensor.tolist() == [0, 1, 2]
    kept.put_back()  # changes nothing
    assert array.tolist()[1] == [3, 4, 5]
