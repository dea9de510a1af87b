"""What is given for the result, of every function: filled and returned as OpenCV does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_manager  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.calling import function  # noqa: E402 - it imports cv2
from devicecore.cv.native import original  # noqa: E402 - it imports cv2
from devicecore.cv.quarantine import keeps  # noqa: E402 - it imports torch
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from devicecore.migrate import PipelineMigrator  # noqa: E402 - like the others
from devicecore.runtime import host_cpu  # noqa: E402 - like the others
from tests.cv import calls  # noqa: E402 - it imports torch

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

    values, _ = operation.replaced(args, {}, moved)
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
    assert keeps(promise, found[0], expected[0]), "another result"
    assert keeps(promise, found[1], expected[1]), "the place holds something else"


HOW = ["keyword", "position", "in place", "another size", "another type"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", [np.copy, lambda array: torch.from_numpy(array.copy())])
@pytest.mark.parametrize("label", ["native", "torch"])
@pytest.mark.parametrize("name", WITH_PLACE)
def test_places_of_every_function(name: str, label: Any, kind: Any, how: str) -> None:
    expected = outcome(original(name), name, how)
    with cv.accept("close"), cv.using(label):
        try:
            found = outcome(function(name), name, how, kind)
        except NoKernelError:  # OpenCV answers, as below
            assert name in LEFT_TO_OPENCV or how == "in place"
            return
    same(name, found, expected)


# Kernels for these have no place for the result.
LEFT_TO_OPENCV = {
    "integral",
    "meanStdDev",
    "normalize",
    "split",
}


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
    except NoKernelError:  # there is none for such a tensor
        assert kind is not np.copy
        assert name in LEFT_TO_OPENCV or how == "in place" or promise_of(name) != "exact"
        return
    same(name, found, expected)


@pytest.mark.parametrize("name", ["insertChannel", "mixChannels"])
def test_images_that_operations_write_into(name: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    args, _ = calls.call(name)
    expected, _ = operation.replaced(args, {}, np.copy)
    original(name)(*expected)
    tensors, _ = operation.replaced(args, {}, torch.from_numpy)
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
        result = several(function(name)(torch.from_numpy(source), *args, dst=place))[-1]
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
