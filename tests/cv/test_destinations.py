"""What is given for the result, of every function: filled and returned as OpenCV does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_manager  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.dispatch import function  # noqa: E402 - it imports cv2
from devicecore.cv.native import original  # noqa: E402 - it imports cv2
from devicecore.cv.self_test import keeps_promise  # noqa: E402 - it imports torch
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from devicecore.migrate import PipelineMigrator  # noqa: E402 - like the others
from devicecore.runtime import host_cpu  # noqa: E402 - like the others
from tests.cv import calls  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.kernels import Exactness

WITH_PLACE = [name for name in calls.NAMES if calls.names_of_results(name)]
# The result beside OpenCV's, the place afterwards beside OpenCV's, whether they are one.
Outcome = tuple[Any, list[Any], list[bool]]


def several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def arrays(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.numpy() if value.ndim else value.item()
    if isinstance(value, (tuple, list)):
        return type(value)(map(arrays, value))
    return value


def images(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from images(value)
        elif getattr(value, "ndim", 0) > 1:
            yield value


def places(name: str, how: str, args: list[Any], like: Any) -> dict[str, Any] | None:
    """Return what is given for the results, by the names of the parameters."""
    names = calls.names_of_results(name)
    results = [like] if name == "split" else several(like)[-len(names) :]
    if how == "in place":
        if name == "split":
            return None
        first = next(images(args))
        fits = (first.shape, first.dtype) == (results[0].shape, results[0].dtype)
        return {names[0]: first} if fits else None

    def place(result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return [place(each) for each in result]
        if how == "another size":
            return np.full((result.shape[0] + 1, *result.shape[1:]), 7, result.dtype)
        if how == "another type":
            return np.full(result.shape, 7, "int32" if result.dtype != "int32" else "float32")
        return np.full_like(result, 7)

    return dict(zip(names, map(place, results), strict=True))


def outcome(run: Callable[..., Any], name: str, how: str, kind: Any = np.copy) -> Outcome | None:
    """Call a function with a place for its result; returns None where OpenCV raises."""
    operation = catalog.find(name, "torch")
    assert operation is not None
    args, _ = calls.call(name)
    given = places(name, how, [*args], original(name)(*args))
    if given is None:
        pytest.skip("the result is no image like the first one")
    memory: dict[int, Any] = {}  # in place, both are the same array or tensor

    def moved(array: Any) -> Any:
        return memory.setdefault(id(array), kind(array))

    values, _ = operation.replace_images(args, {}, moved)
    named = {
        key: [*map(moved, value)] if key == "mv" else moved(value) for key, value in given.items()
    }
    found = [each for place in named.values() for each in several(place)]
    if how == "position" or name == "normalize":  # that one asks for it
        start = operation.parameters.index(next(iter(named)))
        assert start <= len(values)
        values, named = [*values[:start], *named.values(), *values[start + len(named) :]], {}
    try:
        result = run(*values, **named)
    except cv2.error:
        return None
    parts = several(result)
    return arrays(result), arrays(found), [any(part is each for part in parts) for each in found]


def promise_of(name: str) -> Exactness:
    operation = catalog.find(name, "torch")
    assert operation is not None
    plan = operation.plan(*calls.call(name))
    return "exact" if plan is None else plan.promise


def same(name: str, found: Outcome | None, expected: Outcome | None) -> None:
    if found is None or expected is None:
        assert found is expected
        return
    promise = promise_of(name)
    assert found[2] == expected[2], "another object is returned"
    assert keeps_promise(promise, found[0], expected[0]), "another result"
    assert keeps_promise(promise, found[1], expected[1]), "the place holds something else"


HOW = ["keyword", "position", "in place", "another size", "another type"]


def skip_without_kernels(error: NoKernelError) -> None:
    why = ("for any call with this OpenCV", *(["torch: no kernel for"] if IS_OLD else []))
    if any(each in str(error) for each in why):
        pytest.skip("no kernel has the values of this OpenCV")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", [np.copy, lambda array: torch.from_numpy(array.copy())])
@pytest.mark.parametrize("label", ["native", "torch"])
@pytest.mark.parametrize("name", WITH_PLACE)
def test_places_of_every_function(name: str, label: Any, kind: Any, how: str) -> None:
    expected = outcome(original(name), name, how)
    with cv.accept("close"), cv.using(label):
        try:
            found = outcome(function(name), name, how, kind)
        except NoKernelError as error:  # OpenCV answers, as below
            skip_without_kernels(error)
            assert how == "in place"
            return
    same(name, found, expected)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", [np.copy, lambda array: torch.from_numpy(array.copy())])
@pytest.mark.parametrize("owner", ["device", "manager"])
@pytest.mark.parametrize("name", WITH_PLACE)
def test_places_of_operations(name: str, owner: str, kind: Any, how: str) -> None:
    compute = {"device": host_cpu().compute, "manager": default_manager().compute}[owner]
    expected = outcome(original(name), name, how)
    try:
        found = outcome(
            lambda *args, **named: compute(f"cv2.{name}", *args, **named), name, how, kind
        )
    except NoKernelError as error:  # there is none for such a tensor
        skip_without_kernels(error)
        assert kind is not np.copy
        assert how == "in place" or promise_of(name) != "exact"
        return
    same(name, found, expected)


@pytest.mark.parametrize("name", ["insertChannel", "mixChannels"])
def test_images_that_operations_write_into(name: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    args, _ = calls.call(name)
    expected, _ = operation.replace_images(args, {}, np.copy)
    original(name)(*expected)
    tensors, _ = operation.replace_images(args, {}, torch.from_numpy)
    place = operation.destination(tensors, {})
    result = host_cpu().compute(f"cv2.{name}", *tensors)
    pairs = zip(
        several(result), several(place), several(operation.destination(expected, {})), strict=True
    )
    for one, own, wanted in pairs:
        assert one is own
        assert np.array_equal(one.numpy(), wanted)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", [name for name in WITH_PLACE if name != "CLAHE_apply"])
def test_places_under_a_plan(name: str, how: str) -> None:
    expected = outcome(original(name), name, how)
    options = {"device": "cpu", "kernel": "torch", "accept": "close"}
    with PipelineMigrator({f"cv2.{name}": options}):
        found = outcome(getattr(cv2, name), name, how)
    same(name, found, expected)


@pytest.mark.parametrize("label", ["native", "torch"])
def test_a_place_for_a_batch_of_several_results(label: Any) -> None:
    pictures = np.stack([calls.call("threshold")[0][0], calls.call("flip")[0][0][::-1]])
    place = np.zeros_like(pictures)
    with cv.using(label):
        found = (
            cv.threshold(pictures, 100, 255, 0, place)
            if label == "torch"
            else [
                cv.threshold(*each)
                for each in zip(pictures, [100] * 2, [255] * 2, [0] * 2, place, strict=True)
            ]
        )
    for picture, (level, one), where in zip(pictures, found, place, strict=True):
        assert level == 100
        assert np.shares_memory(one, place)
        assert np.array_equal(where, cv2.threshold(picture, 100, 255, 0)[1])


def strided(array: Any, how: str) -> Any:
    """Return a tensor of the same values, of some layout."""
    tensor = torch.from_numpy(np.array(array))
    if how == "planes":
        return tensor.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    if how == "turned":
        return tensor.transpose(0, 1).contiguous().transpose(0, 1)
    spread = {"columns": (1, 2, 1), "channels": (1, 1, 2), "rows": (2, 1, 1)}[how]
    shape = [length * step for length, step in zip(tensor.shape, spread, strict=False)]
    whole = torch.zeros(shape, dtype=tensor.dtype)
    part = whole[tuple(slice(None, None, step) for step in spread[: tensor.ndim])]
    return part.copy_(tensor)


LAYOUTS = ["planes", "turned", "columns", "channels", "rows"]
STRIDED: dict[str, tuple[Any, ...]] = {
    "flip": (1,),
    "resize": ((9, 7),),
    "GaussianBlur": ((3, 3), 0),
    "add": (7.0,),
    "threshold": (100, 255, 0),
    "warpAffine": (np.float32([[1, 0.2, 3], [0.1, 1, 2]]), (20, 12)),  # type: ignore[arg-type]
    "cvtColor": (cv2.COLOR_BGR2RGB,),
}


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("label", [None, "native", "torch"])
@pytest.mark.parametrize("name", STRIDED)
def test_tensors_of_any_layout_are_filled(name: str, label: Any, how: str) -> None:
    source = np.random.default_rng(3).integers(0, 256, (12, 40, 3), np.uint8)
    args = STRIDED[name]
    expected = several(original(name)(source, *args))[-1]
    place = strided(np.zeros_like(expected), how)
    assert how == "rows" or not place.is_contiguous()
    with cv.using(label) if label else cv.accept("exact"):
        try:
            result = several(function(name)(torch.from_numpy(source), *args, dst=place))[-1]
        except NoKernelError as error:
            skip_without_kernels(error)
            raise
    assert result is place
    assert np.array_equal(place.numpy(), expected)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("label", [None, "native", "torch"])
def test_tensors_of_any_layout_in_place(label: Any, how: str) -> None:
    source = np.random.default_rng(3).integers(0, 256, (12, 40, 3), np.uint8)
    expected = cv2.bitwise_not(source)
    place = strided(source, how)
    with cv.using(label) if label else cv.accept("exact"):
        assert cv.bitwise_not(place, place) is place
    assert np.array_equal(place.numpy(), expected)


def _overlapping(rows: Any) -> list[Any]:
    return [rows[at : at + 12] for at in range(3)]


PICTURE = np.random.default_rng(5).integers(0, 256, (12, 40, 3), np.uint8)
PLANE = (12, 40)
# The numbers of a deviation, as arrays of these axes; the last ones do not fit.
NUMBERS = [(3, 1), (1, 3), (3,), (3, 1, 1), (1, 3, 1), (1, 1, 3), (4, 1), (2, 1)]
PLANES: dict[str, Callable[[], Any]] = {
    "a plane for each": lambda: [np.zeros(PLANE, np.uint8) for _ in range(3)],
    "a tuple": lambda: tuple(np.zeros(PLANE, np.uint8) for _ in range(3)),
    "too few": lambda: [np.zeros(PLANE, np.uint8)],
    "too many": lambda: [np.zeros(PLANE, np.uint8) for _ in range(5)],
    "none": list,
    "no arrays": lambda: [None, None, None],
    "with channels": lambda: [np.zeros((*PLANE, 1), np.uint8) for _ in range(3)],
    "one of another size": lambda: [np.zeros((12, n), np.uint8) for n in (40, 39, 40)],
    "one of another type": lambda: [np.zeros(PLANE, t) for t in (np.uint8, np.float32, np.uint8)],
    "the same one": lambda: [np.zeros(PLANE, np.uint8)] * 3,
    "overlapping": lambda: _overlapping(np.zeros((14, 40), np.uint8)),
    "rows apart": lambda: [np.zeros((24, 80), np.uint8)[::2, :40] for _ in range(3)],
    "columns apart": lambda: [np.zeros((12, 80), np.uint8)[:, ::2] for _ in range(3)],
    "one array": lambda: np.zeros((3, *PLANE), np.uint8),
}


def filled(run: Callable[..., Any], make: Callable[[], Any]) -> Any:
    """Return a result, which of the places are in it, and what they hold; None for an error."""
    place = make()
    try:
        found = run(PICTURE, place)
    except cv2.error:
        return None
    parts, given = several(found), several(place)
    same = [part is each for part, each in zip(parts, given, strict=False)]
    return [each.tolist() for each in parts], same, [np.array(each).tolist() for each in given]


@pytest.mark.parametrize("label", [None, "native", "torch"])
@pytest.mark.parametrize("how", PLANES)
def test_places_for_planes(how: str, label: Any) -> None:
    expected = filled(cv2.split, PLANES[how])
    with cv.using(label) if label else cv.accept("exact"):
        try:
            found = filled(cv.split, PLANES[how])
        except NoKernelError as error:
            refused = str(error)
        else:
            assert found == expected
            return
    assert label == "torch"
    assert how in {"no arrays", "the same one", "one array", "columns apart", "overlapping"}
    assert "mv" in refused


@pytest.mark.parametrize("label", [None, "native", "torch"])
@pytest.mark.parametrize("axes", NUMBERS)
@pytest.mark.parametrize("parameter", ["mean", "stddev"])
@pytest.mark.parametrize("step", [1, 2])
def test_places_for_numbers(parameter: str, axes: tuple[int, ...], label: Any, step: int) -> None:
    def make() -> Any:
        return np.full((axes[0] * step, *axes[1:]), -1.0)[::step]

    expected = filled(lambda image, place: cv2.meanStdDev(image, **{parameter: place}), make)
    with cv.using(label) if label else cv.accept("exact"):
        try:
            found = filled(lambda image, place: cv.meanStdDev(image, **{parameter: place}), make)
        except NoKernelError as error:
            refused = str(error)
        else:
            assert found == expected
            return
    assert label == "torch"
    assert (step, axes) not in {(1, (3, 1)), (1, (3, 1, 1))}
    assert parameter in refused


def test_places_for_a_range_of_another_type() -> None:
    for depth, dtype in ((-1, np.uint8), (cv2.CV_32F, np.float32), (cv2.CV_32F, np.uint8)):
        places = [np.full_like(PICTURE, 7, dtype) for _ in range(2)]
        results = [cv2.normalize(PICTURE, places[0], 0, 200, cv2.NORM_MINMAX, depth)]
        with cv.using("torch"):
            results.append(cv.normalize(PICTURE, places[1], 0, 200, cv2.NORM_MINMAX, depth))
        for one, other in (results, places):
            assert np.array_equal(one, other)
        assert [one is place for one, place in zip(results, places, strict=True)] == [
            results[0].dtype == dtype
        ] * 2
