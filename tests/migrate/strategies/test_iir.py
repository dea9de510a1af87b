"""scipy.signal's filters by torch: what scipy itself returns, or a refusal."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
signal = pytest.importorskip("scipy.signal")

from devicecore.errors import RefusedCallError  # noqa: E402 - after torch
from devicecore.migrate.strategies.scipy.impulse_response import Filter, response_of  # noqa: E402
from tests.migrate.comparing import Strategies  # noqa: E402 - after torch

NAME = "scipy.signal"
NEAR = Strategies(signal, NAME, scale=9)
DTYPES = ("f", "d", "F", "D")
BANDS: tuple[tuple[str, Any], ...] = (
    ("low", 0.2), ("high", 0.3), ("bandpass", (0.2, 0.5)), ("bandstop", (0.3, 0.6)),
)  # fmt: skip
RIPPLES: dict[str, dict[str, int]] = {
    "butter": {}, "bessel": {}, "cheby1": {"rp": 1}, "cheby2": {"rs": 40},
    "ellip": {"rp": 1, "rs": 40},
}  # fmt: skip


def noise(*shape: int, dtype: str = "d") -> Any:
    values = np.random.default_rng(0).standard_normal((2, *shape)) * 9
    return (values[0] + 1j * values[1] if dtype in "FD" else values[0]).astype(dtype)


def designed(kind: str, order: int, band: str, at: Any, output: str = "ba") -> Any:
    return getattr(signal, kind)(order, Wn=at, btype=band, output=output, **RIPPLES[kind])


# --- without feedback -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_filters_with_a_finite_response(dtype: str, axis: int) -> None:
    x = noise(40, 50, dtype=dtype)
    taps = np.array([1, 2, 3.5], dtype)
    NEAR.check("lfilter", taps, np.array([2], dtype), x, axis)
    NEAR.check("lfilter", taps, np.array([2, 0, 0, 0], dtype), x, axis)
    NEAR.check("lfilter", [0.5, 2], 1.0, x, axis=axis)
    NEAR.check("lfilter", 3.0, [1.5], x, axis=axis)
    NEAR.check("lfilter", np.ones(90, dtype), [1], x[0])
    state = np.ones(2, dtype).reshape((2, 1) if axis == 0 else (1, 2))
    NEAR.check("lfilter", taps, np.array([1], dtype), x, axis, state)
    NEAR.check("lfilter", taps, np.array([1], dtype), x[:1, :1], axis, state)
    NEAR.check("filtfilt", taps, [1.0], x, axis)


# --- with feedback --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RIPPLES)
@pytest.mark.parametrize(("band", "at"), BANDS)
def test_filters_of_every_kind(kind: str, band: str, at: Any) -> None:
    x = noise(2, 3000)
    for order in (1, 2, 3, 5, 8):
        sections = designed(kind, order, band, at, "sos")
        NEAR.check("sosfilt", sections, x)
        NEAR.check("sosfiltfilt", sections, x)
        if order <= (3 if band.startswith("band") else 5):
            weights = designed(kind, order, band, at)
            NEAR.check("lfilter", *weights, x)
            NEAR.check("filtfilt", *weights, x)


@pytest.mark.parametrize(("dtype", "own"), list(product("fdFDilhb", "fdFD")))
def test_results_have_scipys_type(dtype: str, own: str) -> None:
    x = noise(300, dtype=dtype)
    b, a = np.array([0.5, 1, 0.25], own), np.array([2, -1, 0.5], own)
    sections = np.array([[0.5, 1, 0.25, 1, -0.5, 0.25]], own)
    near = NEAR if "F" not in own + dtype and "f" not in own + dtype else ROUGH
    near.check("lfilter", b, a, x)
    near.check("lfilter", b, a, x, zi=np.ones(2, own))
    near.check("filtfilt", b, a, x)
    near.check("sosfiltfilt", sections, x)
    near.check("sosfilt", sections, x)
    near.check("sosfilt", sections, x, zi=np.ones((1, 2), dtype))


# The results may be doubles where the weights were rounded to singles.
ROUGH = Strategies(signal, NAME, scale=9, rounding=2e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_axes_and_odd_strides(dtype: str, axis: int) -> None:
    b, a = (each.astype(dtype) for each in designed("butter", 2, "low", 0.4))
    sections = designed("butter", 4, "low", 0.4, "sos").astype(dtype)
    values = noise(25, 22, 21, dtype=dtype)
    for x in (values, values.T, values[::-1, :, ::-1], values[..., 1:2], values[:1]):
        state = np.moveaxis(np.ones((*np.moveaxis(x, axis, -1).shape[:-1], 2), dtype), -1, axis)
        NEAR.check("lfilter", b, a, x, axis)
        NEAR.check("lfilter", b, a, x, axis, state)
        NEAR.check("sosfilt", sections, x, axis)
        NEAR.check("sosfilt", sections, x, axis, np.stack((state, 2 * state)))
        if x.shape[axis] > 15:
            NEAR.check("filtfilt", b, a, x, axis)
            NEAR.check("sosfiltfilt", sections, x, axis)


@pytest.mark.parametrize("length", [1, 2, 3, 500, 1023, 1024, 1025, 7169, 7170, 30000])
def test_every_length(length: int) -> None:
    # Responses are cut off at 1024, and the transforms have 8192 values.
    x, (b, a) = noise(length), designed("cheby1", 2, "low", 0.2)
    sections = designed("butter", 5, "high", 0.2, "sos")
    NEAR.check("lfilter", b, a, x)
    NEAR.check("lfilter", b, a, x, zi=signal.lfilter_zi(b, a))
    NEAR.check("sosfilt", sections, x)
    NEAR.check("sosfilt", sections, x, zi=signal.sosfilt_zi(sections))


@pytest.mark.parametrize("cut", [1, 40, 1023, 1500])
def test_a_filter_in_two_pieces(cut: int) -> None:
    x = noise(3, 2000)
    b, a = designed("ellip", 4, "low", 0.3)
    sections = designed("ellip", 6, "bandpass", (0.2, 0.5), "sos")
    state = np.zeros((3, 4))
    parts = []
    for part in (x[:, :cut], x[:, cut:]):
        found, state = NEAR.compute("lfilter", b, a, part, zi=state)
        parts.append(found)
    np.testing.assert_allclose(np.hstack(parts), signal.lfilter(b, a, x), rtol=0, atol=1e-10)
    parts, state = [], np.zeros((len(sections), 3, 2))
    for part in (x[:, :cut], x[:, cut:]):
        found, state = NEAR.compute("sosfilt", sections, part, zi=state)
        parts.append(found)
    np.testing.assert_allclose(np.hstack(parts), signal.sosfilt(sections, x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("padtype", ["odd", "even", "constant", None])
@pytest.mark.parametrize("padlen", [None, 0, 1, 99])
def test_both_ways(padtype: str | None, padlen: int | None) -> None:
    x = noise(3, 100)
    b, a = designed("butter", 3, "low", 0.3)
    NEAR.check("filtfilt", b, a, x, padtype=padtype, padlen=padlen)
    sections = designed("butter", 3, "high", 0.3, "sos")
    NEAR.check("sosfiltfilt", sections, x, padtype=padtype, padlen=padlen)
    NEAR.check("sosfiltfilt", designed("butter", 4, "low", 0.3, "sos"), x, -1, padtype, padlen)
    # Integers are continued as integers, which overflow.
    small = np.random.default_rng(0).integers(-128, 128, (2, 100)).astype(np.int8)
    NEAR.check("filtfilt", b, a, small, padtype=padtype, padlen=padlen)
    NEAR.check("filtfilt", [1, 2], [4, 1], small, padtype=padtype, padlen=padlen)


@pytest.mark.parametrize("at", [0.02, 0.005])
def test_low_frequencies_in_sections(at: float) -> None:
    x = noise(40_000) + 20
    for order in (1, 2, 4):
        for band in ("low", "high"):
            sections = designed("butter", order, band, at, "sos")
            NEAR.check("sosfilt", sections, x)
            if at > 0.01:
                NEAR.check("sosfiltfilt", sections, x)


def test_sizes_do_not_matter() -> None:
    b, a = designed("butter", 3, "low", 0.3)
    for factor in (1e-280, 1e-20, 1e20, 1e280):
        x = noise(500) * factor
        found = NEAR.compute("lfilter", b, a, x)
        expected = signal.lfilter(b, a, x)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(x).max())
    NEAR.check("lfilter", b, a, np.zeros(90))
    NEAR.check("filtfilt", b, a, np.zeros(90))


@pytest.mark.parametrize(("weight", "is_kept"), [(0.99, True), (0.9995, False)])
def test_only_small_responses_are_kept(weight: float, is_kept: bool) -> None:
    of = Filter.of([(np.array([0.5]), np.array([1, -weight]))])
    first, second = response_of(of), response_of(of)
    assert first is not None
    assert second is not None
    assert (first is second) == is_kept
    assert (first.impulse.nbytes + first.outputs.nbytes + first.states.nbytes < 1 << 21) == is_kept
    np.testing.assert_array_equal(first.impulse, second.impulse)
    expected = 0.5 * weight ** np.arange(len(first.impulse))
    np.testing.assert_allclose(first.impulse, expected, rtol=0, atol=1e-13)


radii = st.floats(0, 0.97)
angles = st.floats(0, np.pi)


@given(
    st.lists(st.tuples(radii, angles), min_size=1, max_size=3),
    st.lists(st.floats(-2, 2, width=16), min_size=1, max_size=6).filter(any),
    st.integers(1, 2000),
    st.booleans(),
)
def test_any_stable_filter(
    poles: list[tuple[float, float]], forward: list[float], length: int, has_state: bool
) -> None:
    inside = np.array([radius * np.exp(1j * angle) for radius, angle in poles])
    back = np.poly(np.r_[inside, inside.conj()]).real
    order = max(len(back), len(forward)) - 1
    x = noise(2, length)
    how = {"zi": np.ones((2, order))} if has_state and order else {}
    expected = signal.lfilter(forward, back, x, **how)
    size = float(np.abs(expected[0]).max())
    near = Strategies(signal, NAME, scale=size, rounding=1e-9)
    try:
        near.check("lfilter", forward, back, x, **how)
    except RefusedCallError as error:
        assert "rounding is enlarged too far" in str(error)  # noqa: PT017 - or it is near
        terms = np.abs(forward).sum() * np.abs(x).max() + np.abs(back).sum() * size
        feedback = np.abs(signal.lfilter([1], back, np.eye(1, 2000)[0])).sum()
        assert feedback * terms > 1e4 * size


# --- what is left to scipy ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "at", "is_near"),
    [(2, 0.01, True), (4, 0.05, True), (4, 0.001, False), (6, 0.02, False), (10, 0.05, False)],
)
def test_rounding_that_feedback_enlarges(order: int, at: float, is_near: bool) -> None:
    x, weights = noise(9000), designed("butter", order, "low", at)
    if is_near:
        NEAR.check("lfilter", *weights, x)
    else:
        NEAR.refuse("rounding is enlarged too far", "lfilter", *weights, x)
        NEAR.refuse("rounding is enlarged too far", "filtfilt", *weights, x)
    # The same filter, in singles.
    singles = designed("butter", order, "low", at / 5, "sos").astype("f")
    NEAR.refuse("rounding is enlarged too far", "sosfilt", singles, x.astype("f"))


def test_little_is_left_of_a_large_signal() -> None:
    b, a = designed("butter", 2, "high", 0.01)
    x = noise(3000) + 1e9
    NEAR.refuse(
        "rounding is enlarged too far", "lfilter", b, a, x, zi=signal.lfilter_zi(b, a) * x[0]
    )
    NEAR.refuse("rounding is enlarged too far", "filtfilt", b, a, x)


@pytest.mark.parametrize(
    "back", [[1, -1.0], [1, -1.2], [1, 0, 1.0], [1, -0.999999], [1, -1e200, 3]]
)
def test_filters_that_do_not_forget(back: list[float]) -> None:
    reason = "unstable, or hardly forgets"
    NEAR.refuse(reason, "lfilter", [1.0], back, noise(30))
    NEAR.refuse(reason, "sosfilt", [[1.0, 0, 0, *back, *[0] * (3 - len(back))]], noise(30))


def test_what_one_section_hides_of_another() -> None:
    sections = [[1.0, 0, 0, 1, -1, 0], [1, -1, 0, 1, -0.5, 0]]
    NEAR.refuse("unstable, or hardly forgets", "sosfilt", sections, noise(5000))


def test_long_feedback() -> None:
    back = np.zeros(100)
    back[[0, -1]] = 1, 0.5
    NEAR.refuse("has a large state", "lfilter", [1.0], back, noise(30))


def test_filters_that_are_left_to_scipy() -> None:
    x = noise(99)
    b, a = [1.0, 0.5], [1.0, -0.5]
    for name in ("lfilter", "filtfilt"):
        NEAR.refuse("there is no filter", name, [], a, x)
        NEAR.refuse("there is no filter", name, b, [a], x)
        NEAR.refuse("divided by 0", name, b, [0.0, 1], x)
        NEAR.refuse("there is no signal", name, b, a, 3.0)
        NEAR.refuse("there is no signal", name, b, a, x[:0])
        NEAR.refuse("there is no axis 1", name, b, a, x, 1)
        NEAR.refuse("torch has no object", name, b, a, x.astype(object))
        NEAR.refuse("torch has no float128", name, b, a, x.astype("g"))
        for bad in (np.nan, np.inf):
            NEAR.refuse("infinities or NaNs", name, b, a, np.r_[x, bad])
            NEAR.refuse("infinities or NaNs|no steady state", name, [bad, 1], a, x)
        Strategies(signal, NAME, accept="exact").refuse("only promised", name, b, a, x)
    NEAR.refuse("values are int64", "lfilter", [1, 2], [1], np.arange(9))
    NEAR.refuse("values are int64", "lfilter", [1, 2], [1, 1], np.arange(9))
    NEAR.refuse("infinities or NaNs", "lfilter", b, a, x, zi=[np.nan])
    NEAR.refuse("infinities or NaNs", "lfilter", b, a, np.full(9, 1.7e308))
    NEAR.refuse("rounding is enlarged too far", "lfilter", [0.2], a, np.full(9, 1e307))
    NEAR.refuse("rounding is enlarged too far", "lfilter", [0.2], a, np.full(9, 1e-320))
    NEAR.refuse("unstable", "lfilter", [1.0], [1e-310, 1], x)
    NEAR.refuse("the state has no values", "lfilter", [1.0], [1.0], x, zi=[])
    NEAR.refuse("the state has another shape", "lfilter", b, a, x, zi=[1.0, 2])
    NEAR.refuse("the state has another shape", "lfilter", b, a, x[None], zi=[1.0])
    NEAR.refuse("the state has another shape", "lfilter", b, a, noise(4, 9), zi=np.ones((3, 1)))


def test_sections_that_are_left_to_scipy() -> None:
    x, sections = noise(99), designed("butter", 4, "low", 0.3, "sos")
    for name in ("sosfilt", "sosfiltfilt"):
        NEAR.refuse("there is no filter", name, sections[None], x)
        NEAR.refuse("there is no filter", name, sections[:0], x)
        NEAR.refuse("a section has 5 weights", name, sections[:, :5], x)
        NEAR.refuse("divided by other than 1", name, 2 * sections, x)
        NEAR.refuse("there is no signal", name, sections, 3.0)
    NEAR.refuse("the state has another shape", "sosfilt", sections, x, zi=np.ones((2, 1, 2)))
    NEAR.refuse("values are int64", "sosfilt", [[1, 2, 1, 1, 0, 0]], np.arange(9))


def test_ways_that_are_left_to_scipy() -> None:
    b, a, x = [1.0, 0.5], [1.0, -0.5], noise(7)
    NEAR.refuse("the method is 'gust'", "filtfilt", b, a, x, method="gust")
    NEAR.refuse("the padding is 'zeros'", "filtfilt", b, a, x, padtype="zeros")
    NEAR.refuse("the padding has 7 values", "filtfilt", b, a, x, padlen=7)
    NEAR.refuse("the padding has 2.5 values", "filtfilt", b, a, x, padlen=2.5)
    NEAR.refuse("the padding has 6 values", "filtfilt", b, a, x[:6])
    NEAR.refuse("no steady state: Singular", "filtfilt", b, [1.0, -1], x)
    NEAR.refuse("no steady state", "filtfilt", [1.0], [1.0], x)
    NEAR.refuse("one of bools", "filtfilt", b, a, x > 0)
