"""`devicecore.cv` on a real CUDA GPU: OpenCV's pixels from every kernel, and where results lie."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore import cv, default_ledger, device_scope
from devicecore.device_factory import default_registry
from devicecore.errors import ScopeError

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv import catalog  # noqa: E402 - like the others
from devicecore.cv.self_test import run_self_test  # noqa: E402 - it imports torch
from devicecore.runtime import default_runtime  # noqa: E402 - like the others
from tests.cv.differential import compare, image  # noqa: E402 - it imports torch
from tests.cv.test_preprocess import MEAN, STD, expected  # noqa: E402 - the same

if TYPE_CHECKING:
    from devicecore.device import Device

pytestmark = pytest.mark.hardware

CURVE = np.arange(256, dtype=np.uint8)[::-1].copy()


@pytest.fixture
def gpu() -> Device:
    """The first GPU, live for torch."""
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], "torch")
    if not found.is_live:
        pytest.skip(f"CUDA for torch is {found.state}: {found.reason}")
    return default_runtime().device("cuda:0", "torch")


KERNELS = [(name, "torch") for name in sorted(catalog.TORCH)]
KERNELS += [(name, "triton") for name in sorted(catalog.TRITON)]


@pytest.mark.parametrize(("name", "label"), KERNELS)
def test_every_kernel_keeps_its_promises(gpu: Device, name: str, label: str) -> None:
    operation = catalog.find(name, label)
    assert operation is not None
    assert run_self_test(operation, gpu) == ""


@pytest.mark.parametrize("flag", range(7))
def test_resize_of_any_size(gpu: Device, flag: int) -> None:
    chance = np.random.default_rng(flag)
    for _ in range(12):
        height, width, high, wide = map(int, chance.integers(1, 700, 4))
        picture = image(height, width, int(chance.integers(1, 5)))
        for label in ("torch", "triton"):
            size, where = (wide, high), "cuda:0"
            compare("resize", picture, size, interpolation=flag, label=label, device=where)


def test_large_images_keep_their_promises(gpu: Device) -> None:
    picture = image(1080, 1920)
    spin = cv2.getRotationMatrix2D((900, 500), 17, 1.1)
    tilt = np.array([[1.02, 0.05, -9], [-0.03, 0.98, 14], [2e-5, -1e-5, 1]])
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("GaussianBlur", (picture, (11, 11), 2.5)),
        ("warpAffine", (picture, spin, (1920, 1080))),
        ("warpPerspective", (picture, tilt, (1280, 720))),
        ("cvtColor", (picture, cv2.COLOR_BGR2HSV)),
        ("cvtColor", (picture, cv2.COLOR_BGR2GRAY)),
        ("cvtColor", (picture, cv2.COLOR_BGR2Lab)),
        ("addWeighted", (picture, 0.7, picture[::-1], 0.3, 3.5)),
        ("medianBlur", (picture, 5)),
        ("filter2D", (picture, -1, np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32))),
        ("copyMakeBorder", (picture, 5, 6, 7, 8, cv2.BORDER_REFLECT_101)),
    ]
    for name, args in calls:
        for label in ("torch", "triton"):
            if catalog.find(name, label) is not None:
                compare(name, *args, label=label, device="cuda:0")


SHARPER = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
# What comes after the image, or after two of them.
OF_ONE: list[tuple[str, tuple[Any, ...]]] = [
    ("LUT", (CURVE,)),
    ("threshold", (100, 200, cv2.THRESH_TRUNC)),
    ("flip", (-1,)),
    ("flip", (1,)),
    ("rotate", (cv2.ROTATE_90_CLOCKWISE,)),
    ("transpose", ()),
    ("split", ()),
    ("copyMakeBorder", (3, 5, 2, 9, cv2.BORDER_REFLECT)),
    ("copyMakeBorder", (1, 0, 13, 4, cv2.BORDER_CONSTANT, None, (9, 70, 5, 1))),
    ("medianBlur", (3,)),
    ("medianBlur", (5,)),
    ("blur", ((5, 3),)),
    ("boxFilter", (-1, (7, 7))),
    ("dilate", (np.ones((3, 3), np.uint8),)),
    ("erode", (cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5)),)),
    ("filter2D", (-1, SHARPER)),
    ("Sobel", (cv2.CV_16S, 1, 0)),
    ("Scharr", (-1, 0, 1)),
    ("Laplacian", (cv2.CV_16S,)),
    ("GaussianBlur", ((5, 5), 0)),
    ("GaussianBlur", ((11, 7), 2.5)),
]
OF_TWO: list[tuple[str, tuple[Any, ...]]] = [
    ("add", ()),
    ("subtract", ()),
    ("absdiff", ()),
    ("max", ()),
    ("multiply", (None, 0.004)),
    ("divide", (None, 100)),
]


@pytest.mark.parametrize(("name", "args"), OF_ONE + OF_TWO, ids=range(len(OF_ONE + OF_TWO)))
def test_images_of_any_size(gpu: Device, name: str, args: tuple[Any, ...]) -> None:
    chance = np.random.default_rng(len(name))
    for channels in (1, 3, 4):
        for _ in range(6):
            height, width = map(int, chance.integers(1, 700, 2))
            given = [image(height, width, channels, seed=seed) for seed in (0, 1)]
            images = given if name in dict(OF_TWO) else given[:1]
            compare(name, *images, *args, label="triton", device=str(gpu.torch_device))


@pytest.mark.parametrize("border", [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE])
@pytest.mark.parametrize("flag", [cv2.INTER_NEAREST, cv2.INTER_LINEAR])
def test_warps_of_any_size(gpu: Device, flag: int, border: int) -> None:
    chance = np.random.default_rng([flag, border])
    for _ in range(12):
        height, width, high, wide = map(int, chance.integers(1, 600, 4))
        picture = image(height, width, int(chance.choice([1, 3, 4])))
        centre, angle = chance.uniform(0, 500, 2), chance.uniform(-180, 180)
        turn = cv2.getRotationMatrix2D(centre, angle, chance.uniform(0.3, 2))
        tilt = np.vstack([turn, [*chance.uniform(-3e-4, 3e-4, 2), 1]])
        for name, matrix in (("warpAffine", turn), ("warpPerspective", tilt)):
            for label in ("torch", "triton"):
                options: Any = {"flags": flag, "borderMode": border, "borderValue": (7, 80, 200, 9)}
                size, where = (wide, high), "cuda:0"
                compare(name, picture, matrix, size, label=label, device=where, **options)


def test_arrays_come_back_and_tensors_stay(gpu: Device) -> None:
    picture = image(60, 80)
    wanted = cv2.resize(picture, (40, 30))
    with device_scope("cuda:0"), default_ledger().limited_to(0), cv.strict():
        found = cv.resize(picture, (40, 30))
        assert isinstance(found, np.ndarray)
        assert np.array_equal(found, wanted)
        several = cv.resize([picture, picture[:20]], (40, 30))
        assert np.array_equal(several[0], wanted)
    there = cv.resize(torch.from_numpy(picture).cuda(), (40, 30))
    assert there.is_cuda
    assert np.array_equal(there.cpu().numpy(), wanted)


def test_a_tensor_on_another_device_than_the_scope(gpu: Device) -> None:
    with device_scope("cpu"), pytest.raises(ScopeError, match="CUDA"):
        cv.resize(torch.zeros(8, 8, 3, dtype=torch.uint8, device="cuda:0"), (4, 4))


def test_what_has_no_kernel_is_in_the_ledger(gpu: Device) -> None:
    picture = image(30, 40)
    before = default_ledger().total
    with device_scope("cuda:0"):
        found = cv.resize(picture, (20, 10), interpolation=cv2.INTER_CUBIC)
    assert np.array_equal(found, cv2.resize(picture, (20, 10), interpolation=cv2.INTER_CUBIC))
    assert default_ledger().total == before + 1


def test_preprocess_is_fused_and_exact(gpu: Device) -> None:
    chance = np.random.default_rng(2)
    modes = ("letterbox", "stretch", "crop")
    for mode, blur in itertools.product(modes, (None, (5, 5), (7, 3))):
        sizes = chance.integers(20, 900, (4, 2))
        pictures = [image(int(height), int(width)) for height, width in sizes]
        with device_scope("cuda:0"), cv.using("triton"):
            found = cv.preprocess(
                pictures,
                (224, 160),
                mode=mode,  # type: ignore[arg-type] # one of the three
                blur=blur,
                color=cv2.COLOR_BGR2RGB,
                mean=MEAN,
                std=STD,
            )
        assert found.is_cuda
        for own, picture in zip(found.cpu().numpy(), pictures, strict=True):
            assert np.array_equal(own, expected(picture, (224, 160), mode, blur, swap=True))
    # The self-test of the fused kernels has not sent them to quarantine.
    assert not [move for move in default_ledger().moves() if "preprocess" in move.op]


def test_the_second_gpu_has_kernels_of_its_own(gpu: Device) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    picture = image(60, 80)
    spin = cv2.getRotationMatrix2D((30, 20), 17, 1.1)
    for index in (0, 1, 0):
        there = torch.from_numpy(picture).to(f"cuda:{index}")
        with cv.using("triton"):
            results = [
                (cv.resize(there, (40, 30)), cv2.resize(picture, (40, 30))),
                (cv.add(there, there), cv2.add(picture, picture)),
                (cv.LUT(there, CURVE), cv2.LUT(picture, CURVE)),
                (cv.GaussianBlur(there, (5, 5), 0), cv2.GaussianBlur(picture, (5, 5), 0)),
                (cv.warpAffine(there, spin, (50, 50)), cv2.warpAffine(picture, spin, (50, 50))),
            ]
        for found, wanted in results:
            assert found.device.index == index
            assert np.array_equal(found.cpu().numpy(), wanted)


def test_frames_may_be_changed_as_soon_as_they_are_given(gpu: Device) -> None:
    frame = image(480, 640)
    wanted = expected(frame, (64, 64), "stretch")
    results = []
    with device_scope("cuda:0"):
        for _ in range(20):
            given = frame.copy()
            results.append(cv.preprocess(given, 64, mode="stretch", mean=MEAN, std=STD))
            given[:] = 0
    assert all(np.array_equal(each[0].cpu().numpy(), wanted) for each in results)
