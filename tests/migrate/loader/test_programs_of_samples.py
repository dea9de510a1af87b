"""Any steps from an image to what a sample has: the batches are those of torch's loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import DeviceLoader  # noqa: E402 - after torch
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.loader.batches import same  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Steps = Mapping[str, Callable[[Any], Any]]

pytestmark = [
    pytest.mark.usefixtures("no_trace"),
    pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels"),
]

PLAN = {f"{__name__}:prepared": {"device": "cpu", "kernel": "torch"}}
MEAN = np.array([0.4, 0.5, 0.6], np.float32)
PLANES = torch.from_numpy(MEAN).view(-1, 1, 1)
NOISE = np.random.default_rng(4).normal(0, 20, (12, 10, 3)).astype(np.float32)

IMAGES: Steps = {
    "blur": lambda x: cv2.GaussianBlur(x, (3, 3), 0),
    "channels": lambda x: cv2.cvtColor(x, cv2.COLOR_BGR2RGB),
    "mirrored": lambda x: cv2.flip(x, 1),
    "flipped": lambda x: x[::-1].copy(),
    "cut": lambda x: np.ascontiguousarray(x[:, 1:]),
    "noise": lambda x: np.clip(x + NOISE[: x.shape[0], : x.shape[1]], 0, 255).astype(np.uint8),
    "light": lambda x: np.clip(x * 1.2 + 3, 0, 255).astype(np.uint8),
    "mark": lambda x: cv2.circle(x.copy(), (4, 4), 2, (255, 0, 0)),
    "mean": lambda x: x if x.mean() > 120 else 255 - x,
}
NUMBERS: Steps = {
    "bytes": lambda x: x,
    "scaled": lambda x: x.astype(np.float32) / 255,
    "normal": lambda x: (x / np.float32(255) - MEAN) / MEAN,
    "half": lambda x: (x > 127).astype(np.float32),
}


def _planes(image: Any) -> Any:
    return image.transpose(2, 0, 1)


ENDS: Steps = {
    "array": lambda x: x,
    "planes": lambda x: x.transpose(2, 0, 1),
    "whole planes": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)),
    "tensor": lambda x: torch.from_numpy(np.ascontiguousarray(x)),
    "copy": lambda x: torch.tensor(x.copy()).float(),
    "tensor of planes": lambda x: torch.as_tensor(x.copy()).permute(2, 0, 1).contiguous().float(),
    "normal tensor": lambda x: (
        torch.from_numpy(x.copy()).permute(2, 0, 1).float().div_(255).sub_(PLANES) / PLANES
    ),
    "turned tensor": lambda x: torch.from_numpy(x.copy()).rot90(1, (0, 1)),
    # Without the copy the strides of torch's own batch depend on whether there are workers.
    "mirrored planes": lambda x: np.stack([_planes(x), _planes(x[:, ::-1])]).copy(),
    "planes beside": lambda x: np.concatenate([_planes(x), _planes(x)[::-1]], 2),
    "plane by plane": lambda x: np.stack([x[..., place].T for place in range(3)]),
    "turned grey": lambda x: np.dstack([x[..., 0].T] * 3),
    "turned four times": lambda x: [np.rot90(x, turns).copy() for turns in range(4)],
    "tensor of joined planes": lambda x: (
        torch.from_numpy(np.ascontiguousarray(np.stack([_planes(x), _planes(x)], 1))).float() * 2
    ),
    "several": lambda x: {"whole": x.copy(), "part": [x[:2], torch.from_numpy(x[2:4].copy())]},
}


def prepared(image: Any, steps: Sequence[str], numbers: str, end: str) -> Any:
    image = cv2.resize(image, (10, 12))
    for name in steps:
        image = IMAGES[name](image)
    return ENDS[end](NUMBERS[numbers](image))


class Samples(torch.utils.data.Dataset):  # type: ignore[name-defined,misc] # it has no types
    def __init__(self, steps: Sequence[str], numbers: str, end: str) -> None:
        self.how = steps, numbers, end
        self.images = np.random.default_rng(len(steps)).integers(0, 256, (3, 16, 14, 3), np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return prepared(self.images[index], *self.how)


@pytest.mark.long
@settings(max_examples=60)
@given(
    steps=st.lists(st.sampled_from(sorted(IMAGES)), max_size=4),
    numbers=st.sampled_from(sorted(NUMBERS)),
    end=st.sampled_from(sorted(ENDS)),
)
def test_any_sample(steps: list[str], numbers: str, end: str) -> None:
    check(steps, numbers, end)


@pytest.mark.parametrize("end", sorted(ENDS))
def test_every_end(end: str) -> None:
    check(["mirrored"], "normal", end)


def check(steps: Sequence[str], numbers: str, end: str) -> None:
    """Fail unless samples give the batches that torch's loader gives, and each was recorded."""
    samples = Samples(steps, numbers, end)
    expected = list(torch.utils.data.DataLoader(samples, batch_size=3))
    loader = DeviceLoader(samples, PLAN, batch_size=3, verify=1)
    same(list(loader), expected)
    (row,) = [row for row in loader.report().rows if row.path == "samples"]
    assert row.migrated == row.calls == len(samples), row.reasons  # none was loaded anew
