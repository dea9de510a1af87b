"""Functions of numpy that a plan names, by torch."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from devicecore.errors import PlanError  # noqa: E402 - after torch
from devicecore.migrate import PipelineMigrator  # noqa: E402
from tests.migrate.comparing import Strategies  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

NEAR = Strategies(np, "numpy", scale=300)
EXACT = Strategies(np, "numpy", accept="exact")


def noise(*shape: int, dtype: str = "d") -> Any:
    values = np.random.default_rng(0).standard_normal((2, *shape)) * 3
    return (values[0] + 1j * values[1] if dtype in "FD" else values[0]).astype(dtype)


# --- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFD")
def test_products(dtype: str) -> None:
    one, two = noise(5, 6, 7, dtype=dtype), noise(5, 7, 3, dtype=dtype)
    NEAR.check("matmul", one, two)
    NEAR.check("matmul", one[:, ::-1, ::2], two[:, ::2])
    NEAR.check("matmul", one, two[0, :, 0])
    NEAR.check("matmul", one[0, 0], two[0, :, 0])
    NEAR.check("dot", one[0], two[0])
    NEAR.check("dot", one[0, 0], two[0, :, 0])
    NEAR.check("inner", one, two[:, :, 0])
    NEAR.check("tensordot", one, two, ([0, -1], [0, 1]))
    NEAR.check("tensordot", one.T, two, 1)
    NEAR.check("tensordot", one, two, axes=0)
    NEAR.check("einsum", "bij,bjk->bik", one, two)
    NEAR.check("einsum", "ijk", one, optimize=True)
    NEAR.check("matmul", one, np.ones(7, "i"))


def test_products_that_are_left_to_numpy() -> None:
    one = noise(3, 3)
    for name in ("matmul", "dot", "inner"):
        NEAR.refuse("products of int64", name, np.eye(3, dtype=int), np.eye(3, dtype=int))
        NEAR.refuse("the shapes do not fit", name, one, one[:, :2][:2])
        NEAR.refuse("one is a number", name, one, 2.0)
        EXACT.refuse("only promised to be tolerance", name, one, one)
    NEAR.refuse("out is given", "matmul", one, one, np.empty((3, 3)))
    NEAR.refuse("dtype is given", "matmul", one, one, dtype=np.float32)
    NEAR.refuse("more axes than matrices", "dot", one[None], one)
    NEAR.refuse("the shapes do not fit", "tensordot", one, one[:, :2], ([1], [1]))
    NEAR.refuse("the axes are 3", "tensordot", one, one, 3)
    NEAR.refuse("no text says", "einsum", one, [0, 1])
    NEAR.refuse("an argument is a MaskedArray", "matmul", np.ma.array(one), one)


def test_less_precise_products_of_gpus_say_nothing_of_the_host() -> None:
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        NEAR.check("matmul", noise(3, 3, dtype="f"), noise(3, 3, dtype="f"))
    finally:
        torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize("dtype", "fdFD")
def test_what_is_solved(dtype: str) -> None:
    near = Strategies(np, "numpy", scale=3000, rounding=2e-4 if dtype in "fF" else 1e-9)
    square = noise(4, 5, 5, dtype=dtype) + 9 * np.eye(5, dtype=dtype)
    positive = square @ square.conj().swapaxes(1, 2) + np.eye(5, dtype=dtype)
    near.check("linalg.inv", square)
    near.check("linalg.det", square[0])
    near.check("linalg.det", square)
    near.check("linalg.solve", square[0], square[1])
    near.check("linalg.solve", square[0], square[1, 0])
    near.check("linalg.cholesky", positive)
    near.check("linalg.cholesky", positive, upper=True)
    near.check("linalg.svd", noise(4, 5, 6, dtype=dtype), compute_uv=False)
    near.check("linalg.eigvalsh", positive)
    near.check("linalg.eigvalsh", positive[0], "U")
    near.check("linalg.inv", np.array([[2, 1], [1, 3]]))


def test_what_cannot_be_solved_is_left_to_numpy() -> None:
    ones = np.ones((3, 3))
    for name in ("inv", "det", "cholesky", "eigvalsh"):
        NEAR.refuse("is not square", f"linalg.{name}", ones[:2])
        NEAR.refuse("no matrix", f"linalg.{name}", ones[0])
        NEAR.refuse("infinities or NaNs", f"linalg.{name}", ones * np.nan)
    NEAR.refuse("is singular", "linalg.inv", ones)
    NEAR.refuse("is singular", "linalg.solve", ones, ones[0])
    NEAR.refuse("not positive definite", "linalg.cholesky", -ones)
    NEAR.refuse("other signs", "linalg.svd", ones)
    NEAR.refuse("there are several", "linalg.solve", ones[None], ones)


@pytest.mark.parametrize("dtype", "fdFDi")
def test_lengths_of_vectors(dtype: str) -> None:
    x = noise(4, 5, dtype=dtype)
    NEAR.check("linalg.norm", x)
    NEAR.check("linalg.norm", x[0])
    for order in (None, 1, 2, np.inf, -np.inf):
        NEAR.check("linalg.norm", x, order, axis=1)
        NEAR.check("linalg.norm", x, order, axis=0, keepdims=True)
        NEAR.check("linalg.norm", x[:, 0], order)
    NEAR.refuse("norm of matrices", "linalg.norm", x, 2)
    NEAR.refuse("the order is 'nuc'", "linalg.norm", x, "nuc")


# --- sums and orders ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFDlh")
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_sums_and_means(dtype: str, axis: Any) -> None:
    x = noise(4, 5, 6, dtype=dtype)
    names = ("sum", "mean", "var", "std")[: 2 if dtype in "FD" else 4]
    for name in names[dtype == "h" :]:
        NEAR.check(name, x, axis)
        NEAR.check(name, x.T[::-1], axis, keepdims=True)
    if dtype == "l":
        EXACT.check("sum", x, axis)
    if dtype in "fd":
        NEAR.check("var", x, axis, ddof=1)


def test_sums_that_are_left_to_numpy() -> None:
    x = noise(4, 5)
    NEAR.refuse("numpy's own type", "sum", np.ones(3, "h"))
    for name in ("sum", "mean", "var", "std"):
        NEAR.refuse("dtype is given", name, x, dtype=np.float32)
        NEAR.refuse("where is given", name, x, where=x > 0)
        NEAR.refuse("no numbers", name, x[:0])
        NEAR.refuse("no numbers", name, x > 0)
        NEAR.refuse("no axis 2", name, x, 2)
        EXACT.refuse("only promised to be tolerance", name, x)
    NEAR.refuse("too few values", "var", x, ddof=20)


@given(
    st.lists(st.one_of(st.integers(-9, 9), st.floats(width=32)), min_size=1, max_size=30),
    st.sampled_from("fd"),
)
def test_orders(values: list[float], dtype: str) -> None:
    x = np.array(values, dtype)
    if np.signbit(x[x == 0]).any():
        EXACT.refuse("negative zeros", "sort", x)
    else:
        EXACT.check("sort", x)
        EXACT.check("argsort", x, kind="stable")


@pytest.mark.parametrize("dtype", "fdilhbB")
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_orders_along_an_axis(dtype: str, axis: int | None) -> None:
    x = noise(5, 6, 7, dtype="d").astype(dtype) + np.zeros((), dtype)
    EXACT.check("sort", x, axis)
    EXACT.check("sort", x.T, axis=axis)
    EXACT.check("argsort", x, axis, stable=True)
    EXACT.refuse("any order", "argsort", x)
    EXACT.refuse("order is given", "sort", x, order="name")


def test_memory_maps_are_left_to_numpy(tmp_path: Path) -> None:
    kept = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(4,))
    EXACT.refuse("an argument is a memmap", "sort", kept)


# --- transforms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFDi")
@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
def test_transforms(dtype: str, norm: str | None) -> None:
    x = noise(5, 6, 7, dtype=dtype)
    for name in ("fft", "ifft", "rfft")[: 2 if dtype in "FD" else 3]:
        NEAR.check(f"fft.{name}", x, norm=norm)
        NEAR.check(f"fft.{name}", x, 5, 1, norm)
        NEAR.check(f"fft.{name}", x.T[::-1], 9, axis=0, norm=norm)
    for name in ("fft2", "ifft2", "fftn", "ifftn"):
        NEAR.check(f"fft.{name}", x, norm=norm)
        NEAR.check(f"fft.{name}", x, axes=(0, 2), norm=norm)
    if norm in {None, "backward"}:
        for count in (None, 1, 8, 9, 20):
            NEAR.check("fft.irfft", x, count, norm=norm)
    NEAR.refuse("the lengths are given", "fft.fftn", x, (3, 3, 3))
    NEAR.refuse("the length is 0", "fft.fft", x, 0)
    NEAR.refuse("there is no axis 3", "fft.fft", x, axis=3)


# --- by a plan ------------------------------------------------------------------------------------


def by_plan(**how: str) -> dict[str, str]:
    return {"device": "cpu", "kernel": "torch", "accept": "tolerance", **how}


def test_numpys_names_are_patched_and_put_back() -> None:
    matmul, dot, fft = np.matmul, np.dot, np.fft.fft
    plan = {name: by_plan() for name in ("numpy.matmul", "numpy.dot", "numpy.fft.fft")}
    with PipelineMigrator(plan, strict=True) as migrator:
        found = np.matmul(np.eye(3), np.ones((3, 2))), np.dot(np.ones(3), np.ones(3))
        np.fft.fft(np.ones(3))
        np.linalg.multi_dot([np.eye(3)] * 3)
        assert np.matmul.signature == matmul.signature
        assert np.matmul.nin == 2
        assert pickle.loads(pickle.dumps(np.matmul)) is np.matmul
    assert (np.matmul, np.dot, np.fft.fft) == (matmul, dot, fft)
    assert found[0].tolist() == np.ones((3, 2)).tolist()
    assert type(found[1]) is np.float64
    rows = {row.path: row.migrated for row in migrator.report().rows}
    assert rows == {"numpy:matmul": 1, "numpy:dot": 3, "numpy.fft:fft": 1}


def test_functions_with_methods_are_refused() -> None:
    add = np.add
    with (
        pytest.raises(PlanError, match="it is a ufunc, whose methods, such as reduce"),
        PipelineMigrator({"numpy.add": by_plan()}),
    ):
        pass
    assert np.add is add


def test_a_frame_does_not_mean_numpy(made: Any) -> None:
    del made
    matmul = np.matmul
    with PipelineMigrator({"made_a.plain": by_plan()}):
        assert np.matmul is matmul
