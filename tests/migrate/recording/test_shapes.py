"""What is foretold of a call's result is what OpenCV returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv import catalog  # noqa: E402 - after cv2
from devicecore.cv.native import original  # noqa: E402
from devicecore.cv.self_test import keeps_promise  # noqa: E402
from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.migrate.recording import execution  # noqa: E402
from devicecore.migrate.recording.opencv_primitives import RECORDED  # noqa: E402
from devicecore.migrate.recording.recording import Recording  # noqa: E402
from devicecore.migrate.recording.snapshots import copy_array  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402

OPTIONS = Options(kernel="torch", accept="close")


def _fetched(node: Any) -> Any:
    return execution.download(execution.compute_node(host_cpu(), node))


def check(name: str, *args: Any, **kwargs: Any) -> bool:
    """Compare a recorded call with OpenCV's; return whether it was recorded."""
    recording = Recording(_fetched, copy_array, host_cpu(), OPTIONS)
    result = recording.record(RECORDED[name], args, kwargs, OPTIONS)
    if result is None:
        return False
    expected = original(name)(*args, **kwargs)
    assert isinstance(result, tuple) == isinstance(expected, tuple)
    results = result if isinstance(result, tuple) else (result,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    assert [(each.shape, each.dtype) for each in results] == [
        (each.shape, each.dtype) for each in wanted
    ]
    operation = catalog.find(name, "torch")
    plan = operation.plan(args, kwargs) if operation else None
    assert plan is not None
    for each, right in zip(results, wanted, strict=True):
        values = each.values
        assert values.flags.c_contiguous == right.flags.c_contiguous
        assert values.flags.writeable
        assert keeps_promise(plan.promise, values, right)
    return True


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_examples(name: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    found = [check(name, *args, **kwargs) for args, kwargs in operation.examples()]
    assert any(found)


IMAGES = st.builds(
    lambda seed, height, width, channels, dtype, order: (
        np.random.default_rng(seed)
        .integers(0, 256, (height, width, channels)[: 3 if channels else 2])
        .astype(dtype)[::order, ::order]
    ),
    st.integers(0, 99),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([0, 0, 1, 3, 3, 4, 2]),
    st.sampled_from(["uint8", "uint8", "float32", "int16", "uint16", "float64"]),
    st.sampled_from([1, 1, -1, 2]),
)
SIZES = st.tuples(st.integers(0, 9), st.integers(0, 9))
DEPTHS = st.sampled_from([-1, 0, 2, 3, 5, 6, 4])
BORDERS = st.sampled_from([0, 1, 2, 4, 3])
KERNELS = st.sampled_from([(3, 3), (1, 5), (2, 2)])
NUMBERS = st.sampled_from(
    [
        *(3, 2.5, (1, 2, 3, 0), (5,), [1, 2, 3], np.array([[1], [2], [3], [4]], np.float64)),
        *(np.array([1.0, 2.0, 3.0]), np.array([7], np.uint8), np.float32(2), True, None),
    ]
)
MATRIX = np.array([[1, 0.2, 1], [0.1, 0.9, 2]])


def _two(image: Any) -> Any:
    """Return images that go with one, and some that do not, and numbers."""
    others = [image, image[::-1], image.astype("float32"), image[:1], image[:, :1], image[..., :1]]
    return st.one_of(st.sampled_from([each.copy() for each in others]), NUMBERS)


def _calls(image: Any) -> dict[str, Any]:
    """Return positional arguments after the image, and others, for each function."""
    none: Any = (st.tuples(), st.fixed_dictionaries({}))
    dtype = st.fixed_dictionaries({}, optional={"dtype": DEPTHS, "dst": st.just(None)})
    ddepth = {"borderType": BORDERS}
    kernel = st.sampled_from([np.ones((3, 3), np.uint8), None, np.ones((2, 3), np.uint8)])
    two = {
        name: (
            st.tuples(_two(image)),
            dtype if name in {"add", "subtract", "multiply"} else none[1],
        )
        for name in ("add", "subtract", "multiply", "absdiff", "min", "max", "bitwise_and")
    }
    warp = {"flags": st.sampled_from([0, 1, 17]), "borderMode": BORDERS, "borderValue": NUMBERS}
    maps = np.mgrid[:5, :4].astype(np.float32)
    return two | {
        "divide": (st.tuples(_two(image)), dtype),
        "addWeighted": (
            st.tuples(st.floats(-2, 2), st.just(image[::-1].copy()), st.just(0.5), st.just(3)),
            dtype,
        ),
        "resize": (
            st.tuples(st.one_of(SIZES, st.none())),
            st.fixed_dictionaries(
                {},
                optional={
                    "fx": st.sampled_from([0.5, 1.7, 0]),
                    "fy": st.sampled_from([0.4, 2, 0]),
                    "interpolation": st.integers(0, 6),
                },
            ),
        ),
        "warpAffine": (st.tuples(st.just(MATRIX), SIZES), st.fixed_dictionaries({}, optional=warp)),
        "warpPerspective": (
            st.tuples(st.just(np.vstack([MATRIX, [0, 0, 1]])), SIZES),
            st.fixed_dictionaries({}, optional=warp),
        ),
        "remap": (
            st.tuples(st.just(maps[1]), st.just(maps[0]), st.sampled_from([0, 1])),
            st.fixed_dictionaries({}, optional={"borderMode": BORDERS}),
        ),
        "copyMakeBorder": (
            st.tuples(*[st.integers(-1, 4)] * 4, BORDERS),
            st.fixed_dictionaries({}, optional={"value": NUMBERS}),
        ),
        "rotate": (st.tuples(st.integers(-1, 3)), none[1]),
        "flip": (st.tuples(st.integers(-1, 1)), none[1]),
        "transpose": none,
        "split": none,
        "merge": none,
        "extractChannel": (st.tuples(st.integers(-1, 3)), none[1]),
        "LUT": (
            st.tuples(
                st.sampled_from(
                    [
                        np.arange(256, dtype=np.uint8),
                        np.arange(256, dtype=np.float32)[:, None],
                        np.arange(768, dtype=np.int16).reshape(1, 256, 3),
                        np.arange(256, dtype=np.uint8).reshape(1, 256, 1),
                    ]
                )
            ),
            none[1],
        ),
        "applyColorMap": (st.tuples(st.integers(0, 23)), none[1]),
        "cvtColor": (
            st.tuples(st.one_of(st.integers(0, 90), st.sampled_from([4, 6, 7, 8]))),
            st.fixed_dictionaries({}, optional={"dstCn": st.integers(0, 4)}),
        ),
        "convertScaleAbs": (
            st.tuples(),
            st.fixed_dictionaries({}, optional={"alpha": st.just(0.5), "beta": st.just(1)}),
        ),
        "inRange": (st.tuples(NUMBERS, NUMBERS), none[1]),
        "compare": (st.tuples(_two(image), st.integers(0, 5)), none[1]),
        "bitwise_not": none,
        "equalizeHist": none,
        "CLAHE_apply": (st.tuples(st.just(2.0), st.just((2, 2))), none[1]),
        "GaussianBlur": (
            st.tuples(KERNELS, st.sampled_from([0, 1.2])),
            st.fixed_dictionaries({}, optional={"borderType": BORDERS}),
        ),
        "blur": (st.tuples(KERNELS), none[1]),
        "boxFilter": (st.tuples(DEPTHS, KERNELS), st.fixed_dictionaries({}, optional=ddepth)),
        "medianBlur": (st.tuples(st.integers(1, 5)), none[1]),
        "filter2D": (
            st.tuples(DEPTHS, st.just(np.ones((3, 3), np.float32) / 9)),
            st.fixed_dictionaries({}, optional=ddepth),
        ),
        "sepFilter2D": (
            st.tuples(DEPTHS, st.just(np.ones(3, np.float32)), st.just(np.ones(3, np.float32))),
            st.fixed_dictionaries({}, optional=ddepth),
        ),
        "Sobel": (
            st.tuples(DEPTHS, st.integers(0, 2), st.integers(0, 2)),
            st.fixed_dictionaries({}, optional=ddepth | {"ksize": st.sampled_from([1, 3, 5, -1])}),
        ),
        "Scharr": (st.tuples(DEPTHS, st.just(1), st.just(0)), none[1]),
        "Laplacian": (
            st.tuples(DEPTHS),
            st.fixed_dictionaries({}, optional=ddepth | {"ksize": st.sampled_from([1, 3])}),
        ),
        "erode": (st.tuples(kernel), st.fixed_dictionaries({}, optional={"iterations": DEPTHS})),
        "dilate": (st.tuples(kernel), none[1]),
        "morphologyEx": (st.tuples(st.integers(0, 7), kernel), none[1]),
        "adaptiveThreshold": (
            st.tuples(st.just(255), st.integers(0, 1), st.integers(0, 1), st.just(3), st.just(2)),
            none[1],
        ),
    }


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(
    data=st.data(), image=IMAGES, name=st.sampled_from(sorted(_calls(np.zeros((2, 2, 3), "uint8"))))
)
def test_any_arguments(data: Any, image: Any, name: str) -> None:
    rest, words = _calls(image)[name]
    first: Any = image
    if name == "merge":
        first = [image] * data.draw(st.integers(1, 4))
    args, kwargs = data.draw(rest), data.draw(words)
    check(name, first, *args, **kwargs)
