"""Random programs of numpy and OpenCV give in a recorded frame what they give without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate.recording.current import RECORDING  # noqa: E402
from devicecore.migrate.recording.operators import to_numpy  # noqa: E402
from devicecore.migrate.recording.recorded_calls import REFUSALS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.device import Device

    Step = Callable[[list[Any]], Any]

from tests.migrate.recording.numpy_programs import World, assert_like, ran, steps  # noqa: E402

IMAGES = st.builds(
    lambda seed, shape, dtype: np.random.default_rng(seed).integers(0, 256, shape).astype(dtype),
    st.integers(0, 9),
    st.sampled_from([(4, 5, 3), (5, 7, 3), (5, 7, 3), (9, 9), (4, 3, 4), (1, 4, 3), (2, 1)]),
    st.sampled_from(["uint8", "uint8", "uint8", "float32", "int16"]),
)


@settings(max_examples=500, deadline=None)
@given(
    images=st.lists(IMAGES, min_size=1, max_size=2),
    program=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), steps()), min_size=1, max_size=8
    ),
)
def test_any_program(images: Any, program: Any) -> None:
    check(images, program)


PART = ("index", slice(1, None))
EASILY_WRONG: dict[str, list[Any]] = {
    "a part in C's order is its own copy": [PART, ("cv", "contiguous"), ("assign", 0, 7)],
    "writing into a part": [PART, ("in place", "iadd", 1)],
    "writing into the whole": [PART, ("in place", "isub", 3)],
    "the order of what is computed of turned axes": [("numpy", "T201"), ("astype", "float32")],
    "turned back": [("numpy", "T120"), ("numpy", "norm"), ("numpy", "T"), ("numpy", "clip")],
    "backwards": [("index", slice(None, None, -1)), ("numpy", "norm"), ("numpy", "copy")],
    "dst= that is read from": [("cv", "add_view_dst")],
    "dst=": [("cv", "add_dst"), ("cv", "lut_dst"), ("numpy", "sum")],
    "an axis too many": [("numpy", "moveaxis99")],
    "no such axis": [("numpy", "flip9")],
    "out=": [("numpy", "add_out"), ("numpy", "clip_out"), ("numpy", "norm")],
    "drawn into": [PART, ("cv", "rectangle"), ("numpy", "sum")],
    "warnings": [("astype", "float32"), ("cv", "flip"), ("pair", "truediv")],
    "two of one": [("numpy", "np_divmod_out")],
    "a table": [("cv", "lut_of"), ("cv", "filter_by"), ("cv", "warp_by")],
    "joins of turned axes": [("numpy", "T201"), ("numpy", "stack"), ("numpy", "concatenate")],
    "types that are no numbers": [("astype", "S2")],
    "back in C's order": [("numpy", "T"), ("numpy", "T"), ("pair", "eq")],
}
# What cannot be done with anything but an array of numpy, so that a frame runs anew.
REFUSED = {
    *("bytes", "memoryview", "bytearray", "interface", "set_shape", "set_dtype", "set_strides"),
}


@pytest.mark.parametrize("of_last", [True, False])
@pytest.mark.parametrize("name", sorted(EASILY_WRONG))
def test_programs_that_are_easily_wrong(name: str, of_last: bool) -> None:
    image = np.random.default_rng(1).integers(0, 200, (4, 5, 3), dtype=np.uint8)
    image[0, 0] = 0
    program = []
    for place, step in enumerate(EASILY_WRONG[name]):
        at = place if of_last else 0
        program.append((at, at, step))
    check([image], program)


def check(images: Any, program: Any, device: Device | None = None) -> None:
    """Fail unless a program gives the same in a recorded frame, or the frame would run anew."""
    plain, other = (World(images, is_recorded=each, device=device) for each in (False, True))
    expected, right = ran(plain, program)
    token = RECORDING.set(other.recording)
    try:
        found, wrong = ran(other, program)
    finally:
        RECORDING.reset(token)
    if wrong is not None and (right is None or len(found) < len(expected)):
        # Then the frame runs anew.
        assert program[len(found)][2][1] in REFUSED, wrong
        assert isinstance(wrong, REFUSALS), wrong
        return
    assert found == expected
    assert type(wrong) is type(right), wrong
    for one, another in zip(other.words, plain.words, strict=True):
        assert_like(one, another)
    same = [
        [np.shares_memory(one, another) for one in arrays for another in arrays]
        for arrays in (list(map(to_numpy, other.arrays)), plain.arrays)
    ]
    for one, another in zip(other.arrays, plain.arrays, strict=True):
        assert_like(one, another)
    assert same[0] == same[1]
