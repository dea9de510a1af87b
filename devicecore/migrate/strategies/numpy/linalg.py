"""Matrix products, solves and decompositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.migrate.strategies.tensors import as_floats, torch_type
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from devicecore.migrate.strategies.torch_strategy import Call


def matmul(call: Call, x1: Any, x2: Any) -> Any:
    """Compute `numpy.matmul`."""
    one, two = _factors(call, x1, x2)
    _need_fit(call, one.shape[-1], two.shape[-2 if two.ndim > 1 else 0])
    return _result(torch.matmul(one, two))


def dot(call: Call, a: Any, b: Any) -> Any:
    """Compute `numpy.dot` of vectors and matrices."""
    one, two = _factors(call, a, b)
    call.need(one.ndim <= 2 >= two.ndim, "the arrays have more axes than matrices")
    _need_fit(call, one.shape[-1], two.shape[-2 if two.ndim > 1 else 0])
    return _result(torch.matmul(one, two))


def inner(call: Call, a: Any, b: Any) -> Any:
    """Compute `numpy.inner`."""
    one, two = _factors(call, a, b)
    _need_fit(call, one.shape[-1], two.shape[-1])
    return _result(torch.tensordot(one, two, _pairs([-1], [-1])))


def tensordot(call: Call, a: Any, b: Any, axes: Any) -> Any:
    """Compute `numpy.tensordot`."""
    one, two = _factors(call, a, b)
    if isinstance(axes, int):
        call.need(0 <= axes <= min(one.ndim, two.ndim), f"the axes are {axes}")
        mine, theirs = list(range(one.ndim - axes, one.ndim)), list(range(axes))
    else:
        call.need(isinstance(axes, (tuple, list)) and len(axes) == 2, f"the axes are {axes!r}")
        mine = [call.axis(each, one.ndim) for each in np.atleast_1d(axes[0]).tolist()]
        theirs = [call.axis(each, two.ndim) for each in np.atleast_1d(axes[1]).tolist()]
    lengths = [one.shape[each] for each in mine], [two.shape[each] for each in theirs]
    call.need(lengths[0] == lengths[1], "the shapes do not fit")
    return _result(torch.tensordot(one, two, _pairs(mine, theirs)))


def einsum(call: Call, operands: Any, optimize: Any) -> Any:
    """Compute `numpy.einsum` of a text and arrays, whatever the order of the products."""
    del optimize  # it says in which order numpy computes
    call.need(len(operands) > 1 and isinstance(operands[0], str), "no text says what to sum")
    call.need(all(np.size(each) for each in operands[1:]), "an array is empty")
    return _result(torch.einsum(operands[0], *_factors(call, *operands[1:], most=52)))


def _pairs(mine: list[int], theirs: list[int]) -> Any:
    """Return axes as torch takes them, which its types do not say."""
    return mine, theirs


def _factors(call: Call, *values: Any, most: int = 64) -> list[Any]:
    """Return arrays as tensors of the type that numpy computes their product in."""
    arrays = [call.given(value) for value in values]
    call.need(all(0 < each.ndim < most or most == 52 for each in arrays), "one is a number")
    dtype = np.result_type(*arrays)
    call.need(dtype.kind in "fc", f"products of {dtype} are not for every device")
    tensors = [call.tensor(array).to(torch_type(dtype)) for array in arrays]
    call.promise_products(*tensors)
    return tensors


def _need_fit(call: Call, length: int, other: int) -> None:
    call.need(length == other, "the shapes do not fit")


def _result(tensor: Any) -> Any:
    """Return a new array, or a number of numpy in the place of one without axes."""
    return to_array(tensor)[()]


def inv(call: Call, a: Any) -> Any:
    """Compute `numpy.linalg.inv`."""
    matrices = _matrices(call, a)
    inverse, failed = torch.linalg.inv_ex(matrices)
    call.need((failed == 0).all(), "a matrix is singular")
    return to_array(inverse)


def det(call: Call, a: Any) -> Any:
    """Compute `numpy.linalg.det`."""
    return _result(torch.linalg.det(_matrices(call, a)))


def solve(call: Call, a: Any, b: Any) -> Any:
    """Compute `numpy.linalg.solve` of matrices with vectors or matrices."""
    matrices = _matrices(call, a)
    right = as_floats(call.tensor(b))
    kind = torch.promote_types(matrices.dtype, right.dtype)
    call.need(matrices.ndim == 2 and right.ndim in {1, 2} and right.numel(), "there are several")
    _need_fit(call, matrices.shape[-1], right.shape[0])
    result, failed = torch.linalg.solve_ex(matrices.to(kind), right.to(kind))
    call.need((failed == 0).all(), "a matrix is singular")
    return to_array(result)


def cholesky(call: Call, a: Any, upper: Any = False) -> Any:
    """Compute `numpy.linalg.cholesky`."""
    factor, failed = torch.linalg.cholesky_ex(_matrices(call, a), upper=bool(upper))
    call.need((failed == 0).all(), "a matrix is not positive definite")
    return to_array(factor)


def svd(call: Call, a: Any, compute_uv: Any, hermitian: Any) -> Any:
    """Compute the singular values that `numpy.linalg.svd` gives where no vectors are asked for."""
    call.need(compute_uv is False and hermitian is False, "the vectors may have other signs")
    return to_array(torch.linalg.svdvals(_matrices(call, a, is_square=False)))


def eigvalsh(call: Call, a: Any, UPLO: Any) -> Any:
    """Compute `numpy.linalg.eigvalsh`."""
    call.need(UPLO in {"L", "U"}, f"the part is {UPLO!r}")
    return to_array(torch.linalg.eigvalsh(_matrices(call, a), UPLO=UPLO))


def norm(call: Call, x: Any, ord: Any, axis: Any, keepdims: Any) -> Any:
    """Compute `numpy.linalg.norm` of all values, or of vectors along one axis."""
    values = call.given(x)
    call.need(values.size and values.ndim and values.dtype.kind in "iufc", "there are no numbers")
    call.need(ord in {None, 1, 2, np.inf, -np.inf}, f"the order is {ord!r}")
    is_flat = axis is None and ord is None
    call.need(is_flat or isinstance(axis, int) or values.ndim == 1, "it is the norm of matrices")
    call.promise("tolerance")
    along = None if is_flat else [call.axis(-1 if axis is None else axis, values.ndim)]
    tensor = as_floats(call.tensor(values))
    power = 2 if ord is None else ord
    return _result(torch.linalg.vector_norm(tensor, power, along, keepdim=bool(keepdims)))


def _matrices(call: Call, a: Any, *, is_square: bool = True) -> Any:
    given = call.given(a)
    call.need(given.ndim > 1 and given.size and given.dtype.kind in "iufc", "there is no matrix")
    call.need(not is_square or given.shape[-1] == given.shape[-2], "a matrix is not square")
    matrices = as_floats(call.tensor(given))
    call.promise_products(matrices)
    call.need(matrices.isfinite().all(), "there are infinities or NaNs")
    return matrices
