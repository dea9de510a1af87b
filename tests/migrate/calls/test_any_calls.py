"""Any calls of OpenCV's give under any plan what they give without, and leave nothing behind."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.ledger import default_ledger  # noqa: E402 - after cv2
from devicecore.migrate import PipelineMigrator  # noqa: E402
from devicecore.scope import device_scope  # noqa: E402
from tests.migrate.sites import assert_same  # noqa: E402

TORCH = {"device": "cpu", "kernel": "torch"}

pytestmark = pytest.mark.usefixtures("_scopes_are_ready", "no_trace")


@pytest.fixture(scope="module")
def _scopes_are_ready() -> None:
    with device_scope("cpu"):  # the first one looks at imports from then on
        pass


IMAGES = st.builds(
    lambda seed, height, width, channels, dtype: (
        np.random.default_rng(seed)
        .integers(0, 256, (height, width, channels)[: 3 if channels else 2])
        .astype(dtype)
    ),
    st.integers(0, 99),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([0, 1, 3, 4]),
    st.sampled_from(["uint8", "float32", "int16"]),
)
CALLS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "resize": st.fixed_dictionaries(
        {
            "dsize": st.tuples(st.integers(0, 12), st.integers(1, 12)),
            "interpolation": st.sampled_from([0, 1, 3, 99]),
        }
    ),
    "flip": st.fixed_dictionaries({"flipCode": st.integers(-1, 1)}),
    "blur": st.fixed_dictionaries({"ksize": st.tuples(st.integers(1, 5), st.integers(1, 5))}),
    "medianBlur": st.fixed_dictionaries({"ksize": st.integers(1, 6)}),
    "cvtColor": st.fixed_dictionaries({"code": st.sampled_from([4, 6, 7, 8, 40, 41])}),
    "transpose": st.just({}),
    "GaussianBlur": st.fixed_dictionaries(
        {"ksize": st.sampled_from([(3, 3), (5, 1), (2, 2)]), "sigmaX": st.sampled_from([0.0, 1.5])}
    ),
}
STEPS = st.sampled_from(sorted(CALLS)).flatmap(
    lambda name: st.tuples(st.just(name), CALLS[name], st.sampled_from(["", "dst", "src", "4d"]))
)
PLANS = st.dictionaries(
    st.sampled_from([f"cv2.{name}" for name in sorted(CALLS)]),
    st.sampled_from([TORCH, "cpu", TORCH | {"min_pixels": 40}]),
)


def _ran(image: Any, steps: Any) -> list[Any]:
    """Return what a program sees that calls functions one after the other, and goes on."""
    seen: list[Any] = []
    for name, words, how in steps:
        own = image.copy()
        call = (
            words if how == "src" else words | ({"dst": np.zeros_like(own)} if how == "dst" else {})
        )
        try:
            if how == "src":
                result = getattr(cv2, name)(src=own, **call)
            else:
                result = getattr(cv2, name)(
                    own[None] if how == "4d" and own.ndim == 3 else own, **call
                )
        except cv2.error as error:
            seen.append(str(error))
            continue
        seen += [result, own]
        if how == "dst":
            seen += [call["dst"], result is call["dst"]]
        if how != "4d":
            image = result
    return seen


@pytest.mark.long
@settings(max_examples=60)
@given(image=IMAGES, steps=st.lists(STEPS, min_size=1, max_size=6), plan=PLANS)
def test_any_calls_under_any_plan(image: Any, steps: Any, plan: Any) -> None:
    expected = _ran(image, steps)
    with PipelineMigrator(plan, verify=2) as migrator:
        found = _ran(image, steps)
    assert_same(found, expected)
    reasons = {reason for row in migrator.report().rows for reason in row.reasons}
    assert not [each for each in reasons if "not exact" in each or "faults" in each]


@pytest.mark.long
@settings(max_examples=60)
@given(image=IMAGES, steps=st.lists(STEPS, min_size=1, max_size=6))
def test_any_calls_of_a_recorded_frame(image: Any, steps: Any) -> None:
    plan = {f"{__name__}:_ran": TORCH | {"residency": "scoped"}}
    expected, given_image = _ran(image, steps), image.copy()
    with PipelineMigrator(plan, verify=2) as migrator:
        found = _ran(image, steps)
    assert_same([found, image], [expected, given_image])
    reasons = {reason for row in migrator.report().rows for reason in row.reasons}
    assert not [each for each in reasons if "not exact" in each or "faults" in each]


@pytest.mark.long
def test_many_calls_leave_nothing_behind() -> None:
    image, several = np.zeros((3, 3, 3), np.uint8), np.zeros((1, 2, 2, 2), np.uint8)

    def call(times: int) -> None:
        for _ in range(times):
            cv2.flip(image, 1)
            cv2.merge([image, image])
            cv2.blur(image, (3, 3))
            cv2.add(several, several)  # refused

    plan = {f"cv2.{name}": TORCH for name in ("flip", "merge", "blur", "add")}
    with PipelineMigrator(plan, verify=50) as migrator:
        call(200)
        tracemalloc.start()
        try:
            gc.collect()
            before = tracemalloc.take_snapshot()
            call(6_700)
            gc.collect()
            after = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
    assert sum(row.migrated for row in migrator.report().rows) > 20_000
    grown = Counter(
        {str(each.traceback): each.count_diff for each in after.compare_to(before, "lineno")}
    )
    assert sum(grown.values()) < 500, grown.most_common(5)  # one for each call would be 26,800
    default_ledger().clear()
