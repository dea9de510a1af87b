"""Pairwise distances and similarities of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.strategies.torch_strategy import Call

# How many differences of numbers are in memory at once.
_MOST_AT_ONCE: Final = 1 << 24
_EXACT_PAIRS: Final = "donot_use_mm_for_euclid_dist"


def cdist(
    call: Call,
    XA: Any,
    XB: Any,
    metric: Any,
    out: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Compute `scipy.spatial.distance.cdist`."""
    one, two = call.given(XA), call.given(XB)
    call.need(out is None, "the result is to be written into an argument")
    call.need(one.ndim == two.ndim == 2 and one.shape[1] == two.shape[1], "no two sets of vectors")
    return to_array(_between(call, one, two, metric, kwargs))


def pdist(call: Call, X: Any, metric: Any, out: Any, kwargs: dict[str, Any]) -> Any:
    """Compute `scipy.spatial.distance.pdist`."""
    given = call.given(X)
    call.need(out is None, "the result is to be written into an argument")
    call.need(given.ndim == 2 and given.shape[0] > 1, "no set of vectors")
    distances = _between(call, given, given, metric, kwargs, is_one_set=True)
    rows, columns = torch.triu_indices(len(given), len(given), 1, device=distances.device)
    return to_array(distances[rows, columns])


def _between(
    call: Call, one: Any, two: Any, metric: Any, how: dict[str, Any], *, is_one_set: bool = False
) -> Any:
    """Return the distances of each vector of one set from each of another one."""
    call.need(isinstance(metric, str), "the metric is a function")
    name = str(metric).lower()
    name = _ALIASES.get(name, name)
    known = _OF_BOOLS if name in _OF_BOOLS else _METRICS
    call.need(name in known, f"torch has no metric {metric!r}")
    call.need(one.size and two.size, "there are no vectors")
    # What is not a number or not equal means something else to each metric.
    kinds = {one.dtype.kind, two.dtype.kind}
    call.need(kinds <= set("biuf") and (kinds == {"b"} or "b" not in kinds), "no two sets alike")
    call.need(name not in _OF_BOOLS or kinds == {"b"}, "scipy's releases differ in such values")
    call.promise("tolerance")
    given = dict(how)
    options = _options(call, name, given, one if is_one_set else np.vstack([one, two]))
    call.need(not given, f"it is given {', '.join(given)}")
    first, second = call.tensor(one).double(), call.tensor(two).double()
    call.need(first.isfinite().all() and second.isfinite().all(), "there are infinities or NaNs")
    if name in _OF_BOOLS:
        return _OF_BOOLS[name](*_counts(first, second))
    metric_of = _METRICS[name]
    if name not in _OF_DIFFERENCES:
        return metric_of(first, second, *options)
    rows = max(1, _MOST_AT_ONCE // second.numel())
    parts = [metric_of(each[:, None], second[None], *options) for each in first.split(rows)]
    return torch.cat(parts)


def _options(call: Call, name: str, given: dict[str, Any], vectors: Any) -> tuple[Any, ...]:
    """Take what a metric is given with it, or what scipy takes in its place."""
    if given.get("w", 0) is None:
        del given["w"]
    if name == "minkowski":
        power = given.pop("p", 2.0)
        call.need(isinstance(power, (int, float)) and power > 0, f"the power is {power!r}")
        return (float(power),)
    if name == "seuclidean":
        variances = given.pop("V", None)
        if variances is None:
            variances = np.var(vectors.astype(np.float64), axis=0, ddof=1)
        variances = call.given(variances)
        call.need(variances.shape == vectors.shape[1:], "the variances have another shape")
        call.need((variances > 0).all(), "there are variances of zero")
        return (call.tensor(variances).double(),)
    return ()


def _norms(one: Any, two: Any, power: float) -> Any:
    return torch.cdist(one, two, power, compute_mode=_EXACT_PAIRS)


def _cosine(one: Any, two: Any) -> Any:
    lengths = one.norm(dim=1)[:, None] * two.norm(dim=1)
    return 1 - (one @ two.T / lengths).clamp(-1, 1)


def _correlation(one: Any, two: Any) -> Any:
    return _cosine(one - one.mean(1, keepdim=True), two - two.mean(1, keepdim=True))


def _standardized(one: Any, two: Any, variances: Any) -> Any:
    return _norms(one / variances.sqrt(), two / variances.sqrt(), 2)


def _canberra(one: Any, two: Any) -> Any:
    parts = (one - two).abs() / (one.abs() + two.abs())
    return parts.nan_to_num(0).sum(-1)  # of two zeros


def _braycurtis(one: Any, two: Any) -> Any:
    return (one - two).abs().sum(-1) / (one + two).abs().sum(-1)


def _hamming(one: Any, two: Any) -> Any:
    return (one != two).double().mean(-1)


_METRICS: Final[dict[str, Callable[..., Any]]] = {
    "braycurtis": _braycurtis,
    "canberra": _canberra,
    "chebyshev": lambda one, two: _norms(one, two, float("inf")),
    "cityblock": lambda one, two: _norms(one, two, 1),
    "correlation": _correlation,
    "cosine": _cosine,
    "euclidean": lambda one, two: _norms(one, two, 2),
    "hamming": _hamming,
    "minkowski": _norms,
    "seuclidean": _standardized,
    "sqeuclidean": lambda one, two: _norms(one, two, 2).square(),
}
_OF_DIFFERENCES: Final = frozenset({"braycurtis", "canberra", "hamming"})


def _counts(one: Any, two: Any) -> tuple[Any, Any, Any, Any]:
    """Return how many places are set in both, in the first, in the second, and in none."""
    first, second = (one != 0).double(), (two != 0).double()
    both = first @ second.T
    return both, first @ (1 - second).T, (1 - first) @ second.T, (1 - first) @ (1 - second).T


def _jaccard(both: Any, first: Any, second: Any, _: Any) -> Any:
    return ((first + second) / (both + first + second)).nan_to_num(0)  # of two empty sets


def _yule(both: Any, first: Any, second: Any, none: Any) -> Any:
    half = first * second
    return torch.where(half == 0, 0.0, 2 * half / (both * none + half))


_OF_BOOLS: Final[dict[str, Callable[..., Any]]] = {
    "dice": lambda both, first, second, _: (first + second) / (2 * both + first + second),
    "jaccard": _jaccard,
    "rogerstanimoto": lambda both, first, second, none: (
        2 * (first + second) / (both + none + 2 * (first + second))
    ),
    "russellrao": lambda both, first, second, none: (
        (first + second + none) / (both + first + second + none)
    ),
    "sokalsneath": lambda both, first, second, _: (
        2 * (first + second) / (both + 2 * (first + second))
    ),
    "yule": _yule,
}
_ALIASES: Final = {
    "chebychev": "chebyshev",
    "euclid": "euclidean",
    "manhattan": "cityblock",
    "sqeuclid": "sqeuclidean",
}


def cosine_similarity(call: Call, X: Any, Y: Any, dense_output: Any) -> Any:
    """Compute `sklearn.metrics.pairwise.cosine_similarity`."""
    call.need(dense_output is True, "the result may be sparse")
    one = call.given(X)
    two = one if Y is None else call.given(Y)
    call.need(one.ndim == two.ndim == 2 and one.shape[1] == two.shape[1], "no two sets of vectors")
    call.need(one.size and two.size, "there are no vectors")
    call.need({one.dtype.kind, two.dtype.kind} <= set("iuf"), "values are no real numbers")
    is_single = one.dtype == two.dtype == np.float32
    kind = torch.float32 if is_single else torch.float64
    first, second = call.tensor(one).to(kind), call.tensor(two).to(kind)
    call.promise_products(first, second)
    call.need(first.isfinite().all() and second.isfinite().all(), "there are infinities or NaNs")
    return to_array(_directions(first) @ _directions(second).T)


def _directions(vectors: Any) -> Any:
    lengths = vectors.norm(dim=1, keepdim=True)
    return vectors / torch.where(lengths == 0, 1, lengths)
