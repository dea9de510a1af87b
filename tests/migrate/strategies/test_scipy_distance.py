"""Distances and similarities of vectors, and padding, by torch."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
distance = pytest.importorskip("scipy.spatial.distance")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after torch
from tests.migrate.comparing import Strategies  # noqa: E402

NAME = "scipy.spatial.distance"
NEAR = Strategies(distance, NAME)
EXACT = Strategies(distance, NAME, accept="exact")
OF_NUMBERS = (
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
    "hamming", "minkowski", "seuclidean", "sqeuclidean",
)  # fmt: skip
OF_BOOLS = (
    "dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule",
)  # fmt: skip


def vectors(count: int, dtype: str = "d") -> Any:
    values = np.random.default_rng(count).standard_normal((count, 9)) * 5
    return values > 0 if dtype == "?" else values.astype(dtype)


@pytest.mark.parametrize("dtype", "fdib")
@pytest.mark.parametrize("metric", OF_NUMBERS)
def test_distances_of_numbers(metric: str, dtype: str) -> None:
    one, two = vectors(17, dtype), vectors(11, dtype)
    two[3], two[5] = one[2], -one[2]
    NEAR.check("cdist", one, two, metric)
    NEAR.check("cdist", one[::-2, ::2], np.asfortranarray(two[:, ::2]), metric.upper())
    NEAR.check("cdist", one.tolist(), two.astype("f"), metric=metric)
    NEAR.check("pdist", one, metric)


@pytest.mark.parametrize("metric", OF_BOOLS)
def test_distances_of_bools(metric: str) -> None:
    one, two = vectors(17, "?"), vectors(11, "?")
    two[3], two[5] = one[2], ~one[2]
    NEAR.check("cdist", one, two, metric)
    NEAR.check("pdist", one, metric)
    if metric != "hamming":
        NEAR.refuse("releases differ", "cdist", one * 1.0, two * 1.0, metric)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scipy's, of vectors without a direction
@pytest.mark.parametrize("metric", sorted({*OF_NUMBERS[:-2], *OF_BOOLS}))
def test_distances_of_vectors_of_zeros(metric: str) -> None:
    one, two = vectors(4), vectors(3)
    one[1] = two[2] = 0
    if metric in OF_BOOLS:
        one, two = one > 0, two > 0
    NEAR.check("cdist", one, two, metric)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 70), st.floats(0.5, 9))
def test_any_number_of_vectors(rows: int, columns: int, length: int, power: float) -> None:
    values = np.random.default_rng(length).standard_normal((rows + columns, length))
    NEAR.check("cdist", values[:rows], values[rows:], "minkowski", p=power)
    NEAR.check("cdist", values[:rows], values[rows:], "cosine")


def test_many_distances_are_computed_in_parts() -> None:
    values = np.random.default_rng(0).standard_normal((700, 200))
    NEAR.check("cdist", values, values, "canberra")


def test_standardized_distances() -> None:
    one, two = vectors(5), vectors(4)
    NEAR.check("cdist", one, two, "seuclidean", V=np.arange(1, 10))
    NEAR.refuse("another shape", "cdist", one, two, "seuclidean", V=np.ones(8))
    NEAR.refuse("variances of zero", "cdist", one * 0, two * 0, "seuclidean")


def test_distances_that_are_left_to_scipy() -> None:
    one, two = vectors(5), vectors(4)
    NEAR.refuse("no metric 'mahalanobis'", "cdist", one, two, "mahalanobis")
    NEAR.refuse("no metric 'nearest'", "cdist", one, two, "nearest")
    NEAR.refuse("metric is a function", "cdist", one, two, distance.cosine)
    NEAR.refuse("written into an argument", "cdist", one, two, out=np.empty((5, 4)))
    NEAR.refuse("written into an argument", "pdist", one, out=np.empty(10))
    NEAR.refuse("it is given w", "cdist", one, two, "cosine", w=np.ones(9))
    NEAR.refuse("it is given p", "cdist", one, two, "cosine", p=2)
    NEAR.refuse("the power is 0", "cdist", one, two, "minkowski", p=0)
    NEAR.refuse("no two sets of vectors", "cdist", one, two[:, :3])
    NEAR.refuse("no two sets of vectors", "cdist", one[0], two)
    NEAR.refuse("no set of vectors", "pdist", one[0])
    NEAR.refuse("there are no vectors", "cdist", one[:0], two)
    NEAR.refuse("no two sets alike", "cdist", one > 0, two)
    NEAR.refuse("no two sets alike", "cdist", one + 1j, two)
    NEAR.refuse("infinities or NaNs", "cdist", one * np.nan, two)
    EXACT.refuse("only promised to be tolerance", "cdist", one, two)


@pytest.mark.parametrize("dtype", "fdi")
def test_cosines_of_scikit_learn(dtype: str) -> None:
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    near = Strategies(pairwise, "sklearn.metrics.pairwise")
    one, two = vectors(17, dtype), vectors(11, dtype)
    one[3] = 0
    near.check("cosine_similarity", one, two)
    near.check("cosine_similarity", one)
    near.check("cosine_similarity", one.astype("f"), two)
    near.refuse("no two sets", "cosine_similarity", one, two[:, :3])
    near.refuse("may be sparse", "cosine_similarity", one, dense_output=False)
    near.refuse("infinities or NaNs", "cosine_similarity", one * np.nan)


# --- what takes tensors itself --------------------------------------------------------------------


def by_plan(name: str, accept: str, call: Any) -> Any:
    """Return what a call gives by a plan, without one, and the report."""
    expected = call()
    plan = {name: {"device": "cpu", "kernel": "torch", "accept": accept}}
    with PipelineMigrator(plan) as migrator:
        found = call()
    [row] = migrator.report().rows
    return found, expected, row


def test_padded_sequences() -> None:
    rows = [torch.arange(count) for count in (3, 1, 2)]
    found, expected, row = by_plan(
        "torch.nn.utils.rnn.pad_sequence",
        "exact",
        lambda: torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=9),
    )
    assert row.migrated == 1
    assert found.equal(expected)


def test_collated_samples() -> None:
    samples = [{"x": np.ones(2), "y": torch.ones(3) * n, "z": n, "name": "a"} for n in range(4)]
    found, expected, row = by_plan(
        "torch.utils.data.default_collate",
        "exact",
        lambda: torch.utils.data.default_collate(samples),
    )
    assert row.migrated == 1
    assert found.keys() == expected.keys()
    assert all(found[key].equal(expected[key]) for key in "xyz")
    assert found["x"].device == expected["x"].device
    assert found["name"] == expected["name"]


class Numbers:
    def __len__(self) -> int:
        return 4

    def __getitem__(self, place: int) -> Any:
        return torch.full((2,), place)


def test_workers_collate_in_the_memory_that_they_share() -> None:
    plan = {"torch.utils.data.default_collate": {"device": "cpu", "kernel": "torch"}}
    with PipelineMigrator(plan, strict=False):
        loader = torch.utils.data.DataLoader(
            cast("Any", Numbers()), batch_size=2, num_workers=1, multiprocessing_context="fork"
        )
        batches = list(loader)
    assert [batch[:, 0].tolist() for batch in batches] == [[0, 1], [2, 3]]
    assert all(batch.is_shared() for batch in batches)


MASK = "torch.nn.Transformer.generate_square_subsequent_mask"


def mask_by_plan(*args: Any, **kwargs: Any) -> Any:
    made: Any = torch.nn.Transformer
    return by_plan(MASK, "exact", lambda: made.generate_square_subsequent_mask(*args, **kwargs))


@pytest.mark.parametrize("args", [(5,), (3, None, torch.float64), (0,)])
def test_masks_of_what_comes_before(args: Any) -> None:
    found, expected, row = mask_by_plan(*args)
    assert row.migrated == 1
    assert found.equal(expected)
    assert (found.dtype, found.device) == (expected.dtype, expected.device)


@pytest.mark.parametrize("device", ["meta", torch.device("meta")])
def test_masks_that_are_to_be_elsewhere(device: Any) -> None:
    for found, expected, row in (mask_by_plan(2, device), mask_by_plan(2, device=device)):
        assert row.migrated == 0
        assert "told where its result is to be" in "".join(row.reasons)
        assert found.device == expected.device


@pytest.mark.parametrize(
    ("name", "promise"),
    [("torch.cdist", "close"), ("torch.nn.functional.cosine_similarity", "tolerance")],
)
def test_distances_of_tensors(name: str, promise: str) -> None:
    one, two = torch.randn(5, 3), torch.randn(5, 3, requires_grad=True)

    def call() -> Any:
        owner: Any = torch if name == "torch.cdist" else torch.nn.functional
        return getattr(owner, name.rpartition(".")[2])(one, two)

    found, expected, row = by_plan(name, promise, call)
    assert row.migrated == 1
    assert found.allclose(expected)
    assert found.requires_grad
    found, expected, row = by_plan(name, "exact", call)
    assert row.migrated == 0
    assert f"only promised to be {promise}" in "".join(row.reasons)
    assert found.equal(expected)
