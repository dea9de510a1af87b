"""The parts of `devicecore bench`: children, inputs that are generated, outputs that differ."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devicecore.cli.model_bench.children import ChildError, call_in_child
from devicecore.cli.model_bench.inputs import generated
from devicecore.cli.model_bench.outputs import as_arrays, difference, has_nan
from devicecore.cli.model_bench.report import percentile_99
from devicecore.cli.model_bench.values import Difference
from devicecore.errors import ModelError

PLUGIN = Path(__file__).parents[1] / "plugins" / "bench_devices"


class TestChildren:
    @pytest.fixture
    def plugin(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.syspath_prepend(PLUGIN)
        yield importlib.import_module("bench_devices")
        del sys.modules["bench_devices"]

    def test_it_answers_and_says_what_it_does(self, plugin: Any) -> None:
        said: list[str] = []
        assert call_in_child(plugin.sums, 1, 2, timeout_s=60, show=said.append) == 3
        assert set(said) <= {"", "adding"}

    @pytest.mark.parametrize(
        ("name", "timeout_s", "reason"),
        [
            ("hangs", 1, "it took longer than 1 s, and was stopped while"),
            ("raises", 60, "OSError: the driver said no"),
            ("answers_nonsense", 60, "its answer cannot be read: "),
        ],
    )
    def test_it_fails(self, name: str, timeout_s: float, reason: str, plugin: Any) -> None:
        with pytest.raises(ChildError, match=reason):
            call_in_child(getattr(plugin, name), timeout_s=timeout_s, show=lambda _: None)


def test_a_frozen_program_starts_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ChildError, match="no Python to start"):
        call_in_child(sum, timeout_s=60, show=lambda _: None)


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("expected", "given", "absolute", "relative", "fault"),
    [
        ([1.0, -4.0], [1.0, -4.0], 0, 0, ""),
        ([1.0, -4.0], [1.0, -4.5], 0.5, 0.125, ""),
        ([NAN, INF, 2.0], [NAN, INF, 1.0], 1, 0.5, ""),
        ([1.0, 2.0], [1.0, NAN], None, None, "NaN"),
        ([1.0, NAN], [NAN, NAN], None, None, "NaN"),
        ([1.0, NAN], [1.0, 2.0], None, None, "a number for the CPU's NaN"),
        ([1.0, 2.0], [1.0, INF], None, None, "infinite"),
        ([INF, 2.0], [-INF, 2.0], None, None, "infinite"),
        ([0.0], [0.25], None, None, "0.25 for zeros"),
        ([1.0], [1.0, 1.0], None, None, "another shape"),
        ([True, False], [True, True], 1, 1, ""),
        ([10, 20], [10, 19], 1, 0.05, ""),
        (["a", "b"], ["a", "b"], 0, 0, ""),
        (["a", "b"], ["a", "c"], None, None, "another text"),
        ([], [], 0, 0, ""),
    ],
)
def test_a_difference(
    expected: Any, given: Any, absolute: float | None, relative: float | None, fault: str
) -> None:
    found = difference({"y": np.array(expected)}, {"y": np.array(given)})
    assert (found.absolute, found.relative, found.fault) == (absolute, relative, fault)
    assert found.agrees == (absolute == 0)


def test_numbers_of_ml_dtypes() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    (array,) = as_arrays({"y": np.array([1.5, NAN], bfloat16)}).values()
    assert array.dtype == np.float32
    assert has_nan([array])


def test_other_outputs_are_no_small_difference() -> None:
    found = difference({"y": np.ones(1)}, {"z": np.ones(1)})
    assert (found.fault, found.agrees) == ("other outputs", False)


def test_nan_among_texts_and_whole_numbers() -> None:
    assert not has_nan([np.array(["nan"]), np.array([1]), np.array([1.0])])
    assert has_nan([np.array([1]), np.array([NAN])])


@pytest.mark.parametrize(
    ("count", "slowest_counts"), [(1, True), (99, True), (100, False), (200, False)]
)
def test_the_99th_percentile(count: int, slowest_counts: bool) -> None:
    assert (percentile_99([1.0] * (count - 1) + [9.0]) == 9.0) is slowest_counts


class Argument:
    """What ONNX Runtime says of an input; a fake, for shapes that no model at hand has."""

    def __init__(self, kind: str, shape: list[Any]) -> None:
        self.name, self.type, self.shape = "x", f"tensor({kind})", shape


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ([], ()),
        ([None, None], (1, 128)),
        (["n", "batch_size", 5], (1, 1, 5)),
        ([2, "length"], (2, 128)),
        (["b", "c", "h", "w"], (1, 3, 224, 224)),
        (["b", "h", "w", 3], (1, 224, 224, 3)),
        (["b", 3, "t", "h", "w"], (1, 3, 16, 224, 224)),
        ([0, 4], (0, 4)),
    ],
)
def test_shapes_that_are_chosen(declared: list[Any], shape: tuple[int, ...]) -> None:
    feeds, (given,) = generated([Argument("float", declared)], {}, "m")
    assert feeds["x"].shape == given.shape == shape
    open_axes = [axis for axis, size in enumerate(declared) if not isinstance(size, int)]
    assert list(given.chosen) == open_axes


@pytest.mark.parametrize(
    ("kind", "values"),
    [("int64", {0, 1}), ("bool", {False, True}), ("uint8", set(range(256)))],
)
def test_values_that_are_generated(kind: str, values: set[int]) -> None:
    argument = Argument(kind, [100, 100])
    array = generated([argument], {}, "m")[0]["x"]
    assert set(array.ravel().tolist()) == values
    np.testing.assert_array_equal(array, generated([argument], {}, "m")[0]["x"])


def test_fractions_are_from_0_to_1() -> None:
    array = generated([Argument("float16", [1000])], {}, "m")[0]["x"]
    assert array.dtype == np.float16
    assert array.min() >= 0
    assert array.max() <= 1
    assert array.std() > 0.1


def test_a_type_that_is_not_generated_is_named() -> None:
    with pytest.raises(ModelError, match="'x' is a tensor"):
        generated([Argument("complex64", [1])], {}, "m")


@pytest.mark.parametrize(
    ("absolute", "relative", "agrees"),
    [
        (0.0, 0.0, True),
        (5.0, 0.0009, True),
        (5.0, 0.0011, False),
        (1.3e-7, 1.9e-3, True),  # a detector's probabilities of noise, in float32 throughout
        (1.1e-6, 1.9e-3, False),
        (None, None, False),
    ],
)
def test_an_answer_agrees_but_for_rounding(
    absolute: float | None, relative: float | None, agrees: bool
) -> None:
    assert Difference(absolute, relative).agrees is agrees
    assert not Difference(absolute, relative, fault="NaN").agrees
