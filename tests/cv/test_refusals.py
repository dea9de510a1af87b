"""Calls without a kernel: OpenCV's own error or answer, and a reason that names the argument."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_ledger, default_manager  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.dispatch import function  # noqa: E402 - it imports cv2
from devicecore.cv.environment import environment  # noqa: E402 - it imports cv2
from devicecore.cv.native import original  # noqa: E402 - it imports cv2
from devicecore.errors import NoKernelError, RefusedCallError  # noqa: E402 - like the others
from devicecore.runtime import host_cpu  # noqa: E402 - like the others
from tests.cv import calls  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Callable

GENERIC = "does not support these arguments"
PICTURE = image(20, 30)
MOST = environment().most_channels
NOT_IN_PLACE = [
    name
    for name, row in catalog.ROWS.items()
    if not row.in_place and name not in {"matchTemplate", "remap"}
]


def test_every_function_has_a_call() -> None:
    assert {*calls.NAMES} == {*catalog.TORCH}


@pytest.mark.parametrize("channels", [0, MOST + 1, MOST + 72])
@pytest.mark.parametrize("name", calls.NAMES)
def test_no_kernel_takes_as_many_channels(name: str, channels: int) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    try:
        args, kwargs = calls.call(name, channels or None, (12, 16))
        if channels == 0:
            values, _ = operation.replace_images(
                args, {}, lambda array: array.reshape(*array.shape[:2], -1)[..., :0]
            )
            args = tuple(values)
    except cv2.error:
        pytest.skip("there is no such call")
    assert operation.plan(args, kwargs) is None
    if name != "insertChannel":  # its example has a plane
        assert f"{channels} channels" in operation.why_not(args, kwargs)


@pytest.mark.parametrize("name", ["resize", "flip", "split", "meanStdDev", "add", "GaussianBlur"])
@pytest.mark.parametrize("channels", [0, MOST + 1])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_of_as_many_opencv_says_what_it_says(name: str, channels: int, kind: Any) -> None:
    picture = np.zeros((12, 16, channels), np.uint8)
    args = {"resize": ((8, 6),), "flip": (1,), "add": (picture,), "GaussianBlur": ((3, 3), 0)}
    rest = args.get(name, ())

    def outcome(run: Any, *values: Any) -> Any:
        try:
            found = run(*values)
        except cv2.error as error:
            return str(error)
        parts = found if isinstance(found, tuple) else (found,)
        return [tuple(each.shape) for each in parts]

    expected = outcome(original(name), picture, *rest)
    moved = [kind(each) if isinstance(each, np.ndarray) else each for each in rest]
    assert outcome(function(name), kind(picture), *moved) == expected


@pytest.mark.parametrize("name", NOT_IN_PLACE)
def test_in_place_where_opencv_refuses_it(name: str) -> None:
    (picture, *rest), _ = calls.call(name)
    with pytest.raises(cv2.error):
        original(name)(picture, *rest, picture)
    with pytest.raises(cv2.error), cv.using("torch"):
        getattr(cv, name)(picture, *rest, picture)
    tensor = torch.from_numpy(picture)
    with pytest.raises(cv2.error), cv.using("torch"):
        getattr(cv, name)(tensor, *rest, tensor)


@pytest.mark.parametrize("name", calls.NAMES)
def test_tensors_by_the_name_of_the_function(name: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    args, _ = calls.call(name)
    plan = operation.plan(args, {})
    if plan is None or plan.promise != "exact":
        pytest.skip("no kernel promises its values")
    moved, _ = operation.replace_images(args, {}, lambda array: torch.from_numpy(array.copy()))
    found = host_cpu().compute(f"cv2.{name}", *moved)
    again = default_manager().compute(f"cv2.{name}", *moved)
    for one in (found, again):
        parts = one if isinstance(one, (tuple, list)) else (one,)
        assert all(isinstance(each, torch.Tensor) for each in parts)


def test_the_native_kernel_says_what_it_does_not_take() -> None:
    with pytest.raises(NoKernelError, match=r"argument 1 is a torch\.Tensor, which cv2") as caught:
        host_cpu().compute("cv2.resize", torch.zeros(4, 4, dtype=torch.int64), (2, 2))
    assert GENERIC not in str(caught.value)
    with pytest.raises(cv2.error):  # arguments of its own kind are for cv2 to judge
        host_cpu().compute("cv2.resize", PICTURE, (0, 0))


TURN = np.array([[0.9, 0.1, 1], [-0.1, 0.9, 2]])
REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[str, ...]]] = [
    ("GaussianBlur", ((3, 3), np.float32(1)), {}, ("sigmaX", "np.float32")),
    ("GaussianBlur", ((3, 3), 1), {"borderType": 99}, ("borderType=99",)),
    ("GaussianBlur", ((3, 3), 1), {"bogus": 3}, ("bogus=3",)),
    ("blur", ("x",), {}, ("ksize='x'",)),
    ("medianBlur", (4,), {}, ("ksize=4",)),
    ("Sobel", (cv2.CV_64F, 1, 0), {}, ("ddepth=CV_64F",)),
    ("filter2D", (-1, np.zeros((3, 3), int)), {}, ("kernel=int64 array of 3 x 3",)),
    ("erode", (None,), {"iterations": 100_000}, ("iterations=100000",)),
    ("cvtColor", (999,), {}, ("code=999",)),
    ("threshold", (3, 4, 99), {}, ("type=99",)),
    ("threshold", (3, 4, 0), {"dst": "x"}, ("dst", "str")),
    ("flip", (1, PICTURE[::-1]), {}, ("dst",)),
    ("bilateralFilter", (5, 20, 20, PICTURE), {}, ("dst is an operand",)),
    ("equalizeHist", (), {}, ("src=uint8", "3 channels")),
    ("dft", (), {}, ("src=uint8",)),
    ("split", ([PICTURE],), {}, ("mv",)),
    ("add", (image(2, 2),), {}, ("src2=uint8 of 2 x 2",)),
    ("add", (image(20, 30, 3, seed=1),), {"mask": PICTURE}, ("mask=uint8",)),
    ("resize", ((10.5, 10),), {}, ("dsize=(10.5, 10)",)),
    ("resize", (), {}, ("dsize is not given",)),
    ("norm", (99,), {}, ("no kernel for normType=99",)),
    ("norm", (12,), {}, ("normType=NORM_RELATIVE | NORM_L2",)),
    ("applyColorMap", (99,), {}, ("colormap=99",)),
    ("warpAffine", (TURN, (9, 8)), {"flags": 4}, ("flags=INTER_LANCZOS4",)),
    ("warpAffine", (TURN, (9, 8)), {"flags": 20}, ("flags=WARP_INVERSE_MAP | INTER_LANCZOS4",)),
    ("warpPolar", ((9, 8), (4, 4), 5, 268), {}, ("WARP_FILL_OUTLIERS | WARP_POLAR_LOG",)),
    ("morphologyEx", (cv2.MORPH_HITMISS, None), {}, ("op=MORPH_HITMISS",)),
    ("GaussianBlur", ((3, 3), 1, None, 1, np.int64(20)), {}, ("BORDER_ISOLATED | BORDER_",)),
    ("filter2D", (cv2.CV_8UC3, np.eye(3)), {}, ("ddepth=CV_8UC3",)),
    ("normalize", (None, 0, 1, 4), {}, ("no kernel for norm_type=NORM_L2",)),
    ("add", (image(5, 6),), {}, ("no kernel for src2=uint8 of 5 x 6",)),
    ("bitwise_not", (), {"mask": image(5, 6, 0)}, ("no kernel for mask=uint8 of 5 x 6",)),
]


@pytest.mark.parametrize(("name", "rest", "kwargs", "words"), REFUSED)
def test_the_reason_names_the_argument(
    name: str, rest: Any, kwargs: Any, words: tuple[str, ...]
) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    assert operation.plan((PICTURE, *rest), kwargs) is None
    reason = operation.why_not((PICTURE, *rest), kwargs)
    assert all(word in reason for word in words), reason


@pytest.mark.parametrize(
    ("dtype", "channels", "flag", "words"),
    [
        ("uint16", 3, "LANCZOS4", ("uint16", "interpolation=INTER_LANCZOS4")),
        ("uint16", 3, "AREA", ("src=uint16", "interpolation=INTER_AREA")),
        ("int16", 3, "LINEAR", ("src=int16",)),
        ("float64", 3, "CUBIC", ("src=float64",)),
    ],
)
def test_the_type_the_channels_and_the_flag(
    dtype: str, channels: int, flag: str, words: tuple[str, ...]
) -> None:
    picture = image(20, 30, channels, dtype)
    call = ((picture, (10, 8)), {"interpolation": getattr(cv2, f"INTER_{flag}")})
    with pytest.raises(RefusedCallError) as caught, cv.using("torch"):
        cv.resize(*call[0], **call[1])
    assert all(word in str(caught.value) for word in words)
    default_ledger().clear()


@pytest.mark.parametrize("dtype", ["int32", "float64", "int64", "complex64"])
@pytest.mark.parametrize("name", calls.NAMES)
def test_the_reason_is_never_the_bare_sentence(name: str, dtype: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    args, _ = calls.call(name)
    changed, _ = operation.replace_images(args, {}, lambda array: array.astype(dtype))
    if operation.plan(changed, {}) is not None:
        pytest.skip("there is a kernel")
    reason = operation.why_not(changed, {})
    assert dtype in reason, reason
    assert any(each in reason for each in operation.parameters), reason
    assert GENERIC not in reason


@pytest.mark.parametrize("dtype", ["int32", "float16"])
@pytest.mark.parametrize("name", ["absdiff", "addWeighted", "inRange", "norm"])
def test_arguments_that_have_to_change_together(name: str, dtype: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    args, _ = calls.call(name)
    changed, _ = operation.replace_images(args, {}, lambda array: array.astype(dtype))
    named = dict(zip(operation.parameters, args, strict=False))
    images = [f"{each}={dtype}" for each in operation.images if each in named]
    reason = operation.why_not(changed, {})
    if reason.endswith(f"which OpenCV {cv2.__version__} does not take"):
        pytest.skip("OpenCV 4 has no float16 at all")
    assert all(each in reason for each in images), reason
    assert reason.count("=") == len(images), reason


@pytest.mark.parametrize("name", ["bilateralFilter", "matchTemplate", "magnitude", "exp", "log"])
def test_what_a_promise_is_due_to(name: str) -> None:
    args, _ = calls.call(name)
    operation = catalog.find(name, "torch")
    assert operation is not None
    plan = operation.plan(args, {})
    if plan is None or plan.promise == "exact":
        pytest.skip("it is exact")
    moved, _ = operation.replace_images(args, {}, lambda array: torch.from_numpy(array.copy()))
    attempts: list[Callable[[], object]] = [
        lambda: host_cpu().compute(f"cv2.{name}", *moved),
        lambda: getattr(cv, name)(*args),
    ]
    for attempt in attempts:
        with pytest.raises(NoKernelError) as caught, cv.using("torch"):
            attempt()
        text = str(caught.value)
        assert "these arguments" not in text
        assert re.search(rf"it is only {plan.promise}(, whatever the arguments| for \w+=)", text)


@pytest.mark.skipif(IS_OLD, reason="it is left to OpenCV")
def test_reasons_are_in_the_ledger() -> None:
    default_ledger().clear()
    cv.resize(torch.zeros(8, 8, dtype=torch.int16), (3, 3))
    with cv.using("torch"), pytest.raises(NoKernelError, match="int16"):
        cv.resize(np.zeros((8, 8), np.int16), (3, 3))
    default_ledger().clear()


@pytest.mark.parametrize("first_is_tensor", [True, False])
def test_the_argument_that_is_no_tensor_is_named(*, first_is_tensor: bool) -> None:
    array = np.zeros((4, 4), np.uint8)
    images = (
        [torch.from_numpy(array), array] if first_is_tensor else [array, torch.from_numpy(array)]
    )
    with pytest.raises(NoKernelError, match=f"src{2 if first_is_tensor else 1} is no tensor"):
        host_cpu().compute("cv2.add", *images)


PLANE, MASK = PICTURE[..., 0].copy(), np.ones(PICTURE.shape[:2], np.uint8)
COLOURS = np.arange(256, dtype=np.uint8)[:, None][::-1].copy()
SIGNATURES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("norm", (), {"src1": PLANE, "src2": 2}),
    ("norm", (PLANE,), {"src2": 2, "mask": MASK}),
    ("norm", (PLANE,), {"src2": 1, "normType": MASK}),
    ("norm", (PLANE,), {"normType": MASK}),
    ("norm", (PLANE, 2), {"normType": MASK}),
    ("norm", (PLANE, 2), {"normType": 4}),
    ("norm", (PLANE, 2, None, MASK), {}),
    ("norm", (PLANE, 2), {"normType": None, "mask": MASK}),
    ("norm", (PLANE,), {"normType": 2}),
    ("norm", (PLANE, 2, MASK), {}),
    ("norm", (PLANE, 2), {"mask": MASK}),
    ("norm", (PLANE,), {"normType": 1, "mask": MASK}),
    ("norm", (PLANE, PLANE[::-1].copy(), 2, MASK), {}),
    ("norm", (), {"src1": PLANE, "src2": PLANE[::-1].copy(), "mask": MASK}),
    ("applyColorMap", (PLANE,), {"colormap": COLOURS}),
    ("applyColorMap", (PLANE,), {"userColor": 2}),
    ("applyColorMap", (PLANE, 2, None, COLOURS), {}),
    ("applyColorMap", (PLANE, None, None, COLOURS), {}),
    ("applyColorMap", (PLANE, 2), {"userColor": None}),
    ("applyColorMap", (PLANE,), {"colormap": None, "userColor": COLOURS}),
    ("applyColorMap", (PLANE, COLOURS), {}),
    ("applyColorMap", (PLANE, 2), {"dst": None}),
    ("applyColorMap", (), {"src": PLANE, "userColor": COLOURS}),
    ("applyColorMap", (PLANE,), {"colormap": 2}),
]


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("case", range(len(SIGNATURES)))
def test_names_of_the_two_signatures_are_opencvs(case: int, kind: Any) -> None:
    name, args, kwargs = SIGNATURES[case]

    def answer(run: Any, kind: Any) -> Any:
        def moved(value: Any) -> Any:  # tables of colours are arrays everywhere
            is_image = isinstance(value, np.ndarray) and value is not COLOURS
            return kind(value) if is_image else value

        values = [*map(moved, args)]
        named = {key: moved(value) for key, value in kwargs.items()}
        try:
            return np.asarray(run(*values, **named)).tolist()
        except cv2.error:
            return "an error"

    expected = answer(original(name), np.asarray)
    with cv.accept("close"):
        assert answer(function(name), kind) == expected
    with cv.accept("close"), cv.using("torch"):
        try:
            assert answer(function(name), kind) == expected
        except NoKernelError:
            assert IS_OLD
