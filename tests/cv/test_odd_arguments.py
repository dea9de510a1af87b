"""Arguments that OpenCV refuses or reads otherwise are left to it, for a reason that names them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.cache_key import cache_key  # noqa: E402 - it imports cv2
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from tests.cv import calls  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

PICTURE = image(18, 24)
ONES = np.ones((3, 3), np.uint8)
HISTOGRAM = {"mask": None, "ranges": [0, 256]}
BORDER_VALUES: list[Any] = ["7", object(), (1, 2, 3, 4, 5), ["1", 2], (None, 1), {}, 3 + 4j]
BORDERED: dict[str, dict[str, Any]] = {
    "erode": {"kernel": ONES, "borderType": cv2.BORDER_REPLICATE},
    "morphologyEx": {"op": cv2.MORPH_OPEN, "kernel": ONES, "borderType": cv2.BORDER_REPLICATE},
    "warpAffine": {"M": np.eye(2, 3), "dsize": (9, 8), "borderMode": cv2.BORDER_REPLICATE},
    "copyMakeBorder": {
        **dict.fromkeys(("top", "bottom", "left", "right"), 1),
        "borderType": cv2.BORDER_REPLICATE,
    },
}
CAMERA = np.array([[20.0, 0, 12], [0, 20, 9], [0, 0, 1]])
POLAR = {"dsize": (24, 18), "maxRadius": 9.0, "flags": cv2.WARP_FILL_OUTLIERS}
ODD: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (name, "value" if name == "copyMakeBorder" else "borderValue", {**named, "": value})
        for name, named in BORDERED.items()
        for value in BORDER_VALUES
    ),
    ("erode", "borderValue", {"kernel": ONES, "": (5,)}),
    ("erode", "borderValue", {"kernel": ONES, "": ()}),
    ("morphologyEx", "borderValue", {"op": cv2.MORPH_OPEN, "kernel": ONES, "": (5, 5)}),
    ("calcHist", "channels", {**HISTOGRAM, "": {0: 2}, "histSize": [16]}),
    ("calcHist", "histSize", {**HISTOGRAM, "channels": [0], "": {16: 2}}),
    ("resize", "dsize", {"": (3, True)}),
    ("resize", "dsize", {"": {3: 1, 4: 1}}),
    ("undistort", "cameraMatrix", {"": CAMERA.tolist(), "distCoeffs": None}),
    ("undistort", "distCoeffs", {"cameraMatrix": CAMERA, "": []}),
    ("warpPolar", "center", {**POLAR, "": (True, 3)}),
    ("warpPolar", "center", {**POLAR, "": (np.int64(3), 3)}),
    ("filter2D", "kernel", {"ddepth": -1, "": np.array([1.0, 2.0])}),
    ("filter2D", "delta", {"ddepth": -1, "kernel": np.eye(3), "": 2.0**31}),
    ("filter2D", "kernel", {"ddepth": -1, "": np.full((3, 3), 1e9)}),
    ("insertChannel", "dst", {"": "7", "coi": 0}),
    ("remap", "map1", {"": "7", "map2": None, "interpolation": 1}),
]


@pytest.mark.parametrize("case", range(len(ODD)))
def test_it_is_as_without_kernels(case: int) -> None:
    name, parameter, rest = ODD[case]
    named = {key or parameter: value for key, value in rest.items()}
    picture: Any = [PICTURE] if name == "calcHist" else PICTURE
    first = "images" if name == "calcHist" else "src"

    def outcome(module: Any) -> Any:
        try:
            return getattr(module, name)(**{first: picture}, **named).tolist()
        except (cv2.error, SystemError, TypeError) as error:
            return type(error)

    expected = outcome(cv2)
    try:
        with cv.using("torch"):
            found = outcome(cv)
    except NoKernelError as error:
        reason = str(error)
    else:
        assert found == expected
        assert not isinstance(found, list)
        operation = catalog.find(name, "torch")
        assert operation is not None
        reason = operation.why_not((), {first: picture, **named})
    assert parameter in reason


@pytest.mark.parametrize("number", [1, 0.5])
def test_an_array_of_no_axes_is_no_number(number: float) -> None:
    """Whatever was called before with the number that it holds."""
    scalar = np.array(number)[()]
    assert cache_key(scalar) != cache_key(np.array(number))
    with cv.using("torch"):
        flag: Any
        for flag in (scalar, np.array(number)):
            try:
                expected = cv2.flip(PICTURE, flag)
            except cv2.error:
                with pytest.raises(cv2.error):
                    cv.flip(PICTURE, flag)
            else:
                assert np.array_equal(cv.flip(PICTURE, flag), expected)


@pytest.mark.skipif(IS_OLD, reason="it is left to OpenCV")
@pytest.mark.parametrize(
    ("name", "named"),
    [("Scharr", {"scale": 1e300}), ("Laplacian", {"scale": 1e300}), ("multiply", {"scale": 1e300})],
)
def test_numbers_that_are_too_large_warn_of_nothing(name: str, named: dict[str, Any]) -> None:
    args, _ = calls.call(name)
    operation = catalog.find(name, "torch")
    assert operation is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operation.why_not(args, named)
