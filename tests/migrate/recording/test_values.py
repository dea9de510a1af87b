"""What becomes of values stays recorded where it is the same on all devices, and only there."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate.recording import execution  # noqa: E402 - after cv2
from devicecore.migrate.recording.bounds import find_range  # noqa: E402
from devicecore.migrate.recording.current import RECORDING  # noqa: E402
from devicecore.migrate.recording.elementwise import ELEMENTWISE  # noqa: E402
from devicecore.migrate.recording.lazy_array import LazyArray  # noqa: E402
from devicecore.migrate.recording.nodes import compute_on_host  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402
from tests.migrate.recording.frames import image as picture  # noqa: E402
from tests.migrate.recording.frames import recorded, row, small  # noqa: E402
from tests.migrate.recording.numpy_programs import World, assert_like, ran  # noqa: E402
from tests.migrate.recording.test_programs_of_numpy import check  # noqa: E402
from tests.migrate.recording.value_programs import VALUES, noise  # noqa: E402
from tests.migrate.sites import assert_same  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


def image(shape: tuple[int, ...] = (5, 7, 3), dtype: str = "uint8", seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)


IMAGES = {
    "two": [image(), image(seed=2)],
    "one": [image()],
    "a plane": [image((9, 11))],
    "a row": [image((1, 30, 3))],
    "a pixel": [image((1, 1, 3))],
    "few": [image((2, 3, 4))],
    "int16": [image(dtype="int16")],
    "of nothing known": [image(dtype="float32")],
}


@pytest.mark.parametrize("images", sorted(IMAGES))
@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_are_those_of_numpy(name: str, images: str) -> None:
    check(IMAGES[images], [(0, 1, ("values", name))])


# An infinite value or none is possible, or a value too large for a type; 0.0 and -0.0 are compared
# beside arrays, or by processors; numpy casts, wraps, refuses or warns; axes lie in another order.
ON_THE_HOST = {
    *("noise_large", "noise_nan", "cast_wide", "maximum", "maximum_noise", "clip_arrays"),
    *("clip_row", "round1", "round_x", "where_over", "where_other", "where_one", "compare_over"),
    *("compare_none", "masks_true", "joined_other_lengths", "joined_types", "joined_no_axis"),
    *("joined_flat", "joined_with", "joined_empty", "joined_planes_in_place", "turned_wrong"),
}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_stay_on_the_device(name: str) -> None:
    world = World(IMAGES["two"], is_recorded=True)
    token = RECORDING.set(world.recording)
    try:
        ran(world, [(0, 1, ("values", name))])
    finally:
        RECORDING.reset(token)
    made = world.arrays[2:] or [world.arrays[0].values]
    are_there = all(type(each) is LazyArray and not each.is_on_host for each in made)
    assert are_there == (name not in ON_THE_HOST)


@pytest.fixture
def world() -> Iterator[World]:
    found = World([image(), image(seed=2)], is_recorded=True)
    token = RECORDING.set(found.recording)
    yield found
    RECORDING.reset(token)


TWO = {"add", "subtract", "multiply", "true_divide", "maximum", "minimum", "bitwise_and"}
TWO |= {"bitwise_or", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal"}
DTYPES = ("uint8", "int16", "int32", "float32", "float64", "bool")


def _args(name: str, one: Any, other: Any) -> tuple[Any, ...]:
    if name == "clip":
        return one, 3, 99
    if name == "where":
        return one > 99, one, other
    return (one, other + 1 if name == "true_divide" else other) if name in TWO else (one,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_an_operation(world: World, name: str, dtype: str) -> None:
    function = getattr(np, name)
    one, other = world.arrays
    if dtype == "bool":
        one, other = one > 99, other > 99
    else:
        one, other = one.astype(dtype), other.astype(dtype)
    plain = [compute_on_host(each.node) for each in (one, other)]
    try:
        expected = function(*_args(name, *plain))
    except TypeError:
        with pytest.raises(TypeError):
            function(*_args(name, one, other))
        return
    assert_like(function(*_args(name, one, other)), expected)


def _noisy(array: Any, drawn: Any) -> Any:
    return np.clip(array.astype(np.float32) + drawn, 0, 255).astype(np.uint8)


def test_noise_stays_on_the_device() -> None:
    fetched = []

    def function(given: Any) -> Any:
        x = small(given)
        y = cv2.GaussianBlur(_noisy(x, noise(x)), (3, 3), 0)
        fetched.append(x.is_on_host or y.is_on_host if type(x) is LazyArray else None)
        return np.where(y > 99, y, 255 - y)

    expected = function(picture())
    with recorded() as (run, migrator):
        assert_same(run(function, picture()), expected)
        assert row(migrator).fell_back == 0
    assert fetched == [None, False]


def test_noise_by_opencv_stays_on_the_device(world: World) -> None:
    one = world.arrays[0].astype(np.float32)
    found = np.clip(world.cv("add", one, noise(one)), 0, 255).astype(np.uint8)
    assert not found.is_on_host
    plain = world.arrays[0].values.astype(np.float32)
    assert_like(found, np.clip(cv2.add(plain, noise(plain)), 0, 255).astype(np.uint8))


def test_quotients_by_opencv_may_be_infinite(world: World) -> None:
    one, other = (each.astype(np.float32) for each in world.arrays)
    assert type(world.cv("divide", one, other) + 1) is np.ndarray


def test_noise_is_kept_as_it_is_now(world: World) -> None:
    drawn = noise(world.arrays[0])
    expected = world.arrays[1].values.astype(np.float32) + drawn
    found = world.cv("flip", world.arrays[1].values, 1).astype(np.float32) + drawn[:, ::-1]
    drawn[:] = 0
    assert_like(found[:, ::-1].copy(), expected)


def test_noise_of_many_samples_is_computed_at_once() -> None:
    samples = [image(seed=seed) for seed in range(4)]
    drawn = [noise(samples[0], scale=1 + seed) for seed in range(4)]
    nodes = []
    for sample, each in zip(samples, drawn, strict=True):
        made = World([sample], is_recorded=True)
        token = RECORDING.set(made.recording)
        nodes.append([_noisy(made.arrays[0], each).node])
        RECORDING.reset(token)
    nodes[1:3] = pickle.loads(pickle.dumps(nodes[1:3]))  # as from other processes
    ((members, (found,)),) = execution.compute_frames(host_cpu(), nodes)
    assert members == [0, 1, 2, 3]
    for sample, each, value, (node,) in zip(samples, drawn, found, nodes, strict=True):
        expected = _noisy(cv2.flip(sample, 1), each)
        assert_like(value.numpy(), expected)
        assert_like(compute_on_host(node), expected)


def test_noise_of_a_frame_that_has_ended_is_not_kept(world: World) -> None:
    one = world.arrays[0].astype(np.float32)
    world.recording.is_over = True
    assert type(one + noise(one)) is np.ndarray


def test_no_more_is_kept_than_may_be(world: World) -> None:
    one = world.arrays[0].astype(np.float32)
    world.recording.calls = 10**6
    assert type(one + noise(one)) is np.ndarray


@pytest.mark.parametrize("low", [0.0, -0.0])
@pytest.mark.parametrize("value", [0.0, -0.0])
def test_zeros_keep_the_sign_that_numpy_gives_them(world: World, low: float, value: float) -> None:
    one = world.cv("flip", world.arrays[0].astype(np.float32), 1)  # no table of bytes any more
    signed = one * 0 * np.copysign(np.float32(1), np.float32(value))
    assert not signed.is_on_host
    for limits in ((low, 9.0), (-9.0, low)):
        found = np.clip(signed, *limits)
        assert not found.is_on_host
        assert_like(found, np.clip(np.full(image().shape, value, np.float32), *limits))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("add", "subtract", "multiply", "true_divide", "maximum", "minimum", "clip"),
                *("rint", "absolute", "negative", "where", "astype"),
            ]
        ),
        st.one_of(st.floats(-1e4, 1e4), st.sampled_from([0.1, 0.99999999, -0.5, 255.0])),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, dtype=st.sampled_from(["float32", "float64", "int16"]), is_double=st.booleans())
def test_values_lie_where_they_are_said_to(steps: Any, dtype: str, is_double: bool) -> None:
    world = World([image()], is_recorded=True)
    token = RECORDING.set(world.recording)
    try:
        array = world.arrays[0].astype(dtype)
        for name, number in steps:
            with np.errstate(all="ignore"):
                array = _stepped(array, name, np.float64(number) if is_double else number)
            if type(array) is not LazyArray or array.is_on_host:
                break
            low, high = find_range(array.node.expr)
            values = compute_on_host(array.node)
            assert low <= values.min()
            assert values.max() <= high
    finally:
        RECORDING.reset(token)


def _stepped(array: Any, name: str, number: Any) -> Any:
    match name:
        case "clip":
            return np.clip(array, number, 99.9)
        case "rint" | "absolute" | "negative":
            return getattr(np, name)(array)
        case "where":
            return np.where(array > 9, array, number)
        case "astype":
            return array.astype("int32" if number < 0 else "float32")
        case _:
            return getattr(np, name)(array, number)
