"""Verified calls: the original computes them too, and has the last word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.errors import NoKernelError, RefusedCallError
from devicecore.ledger import default_ledger
from tests.migrate.sites import OwnError, Recorded, site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def moves() -> Iterator[Any]:
    default_ledger().clear()
    yield lambda: {move.reason: count for move, count in default_ledger().moves().items()}
    default_ledger().clear()


def test_one_of_n_calls_is_verified() -> None:
    original = Recorded(7)
    one = site(lambda: 7, verify=3)
    assert [one.call(original, (), {}) for _ in range(9)] == [7] * 9
    assert len(original.calls) == 3
    assert one.tally.row().migrated == 9


def test_refused_calls_are_not_those_that_are_verified() -> None:
    turns = iter(range(100))

    def kernel() -> int:
        if next(turns) % 2:
            raise RefusedCallError("f", "d")
        return 7

    original = Recorded(7)
    one = site(kernel, verify=2)
    for _ in range(20):
        one.call(original, (), {})
    assert len(original.calls) > 10 + 4  # ten refused ones, and about every second other


@pytest.mark.parametrize(
    "wrong",
    [
        np.full((2, 2), 8, np.uint8),
        np.full((2, 2), 7, np.int32),
        np.full((2, 1), 7, np.uint8),
        None,
        (np.full((2, 2), 7, np.uint8),),
    ],
    ids=["values", "dtype", "shape", "nothing", "tuple"],
)
def test_a_wrong_kernel_is_caught_and_not_used_again(wrong: Any, moves: Any) -> None:
    right = np.full((2, 2), 7, np.uint8)
    kernel = Recorded(wrong)
    one = site(kernel, verify=1)
    for _ in range(3):
        assert one.call(Recorded(right), (), {}) is right
    assert len(kernel.calls) == 1
    assert moves() == {"its result was not exact, so it is not used any more": 3}
    row = one.tally.row()
    assert (row.calls, row.migrated, row.fell_back) == (3, 0, 3)


def test_strict_raises_for_a_wrong_kernel() -> None:
    with pytest.raises(NoKernelError, match="not exact"):
        site(lambda: 8, verify=1, strict=True).call(Recorded(7), (), {})


def test_a_kernel_that_takes_what_the_original_refuses_is_wrong() -> None:
    one = site(lambda: 8, verify=1)
    with pytest.raises(OwnError):
        one.call(Recorded(OwnError()), (), {})
    assert one.call(Recorded(7), (), {}) == 7
    assert one.tally.row().migrated == 0


def test_what_is_accepted_is_enough() -> None:
    found, expected = np.full(3, 8, np.uint8), np.full(3, 7, np.uint8)
    one = site(lambda: found, verify=1, accept="lsb1")
    one.call(Recorded(expected), (), {})
    assert one.tally.row().migrated == 1


def test_both_compute_from_the_same_where_the_result_goes_into_an_argument() -> None:
    def doubled(array: Any) -> Any:
        array *= 2
        return array

    given = np.arange(6)
    one = site(doubled, verify=1)
    assert one.call(doubled, (given,), {}) is given
    assert given.tolist() == [0, 2, 4, 6, 8, 10]
    assert one.tally.row().migrated == 1


def test_a_kernel_that_wrote_before_it_failed_has_written_nothing_when_it_is_verified() -> None:
    def spoiled(array: Any) -> Any:
        array[:] = 99
        raise ValueError

    given = np.arange(3)
    site(spoiled, verify=1).call(lambda array: array.sum(), (given,), {})
    assert given.tolist() == [0, 1, 2]


def test_functions_of_the_program_do_not_run_twice_to_be_verified() -> None:
    original = Recorded(1)
    one = site(lambda f: f(), runs_original=True, verify=1)
    for _ in range(5):
        one.call(original, (), {})
    assert len(original.calls) == 5
