"""How functions of `devicecore.cv` are called: signatures, policies, batches, results, fallback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore import cv, default_ledger, device_scope
from devicecore.errors import FallbackForbiddenError, NoKernelError
from devicecore.kernels import get_kernel
from devicecore.runtime import default_runtime, host_cpu

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv import catalog, native, self_test  # noqa: E402 - it imports torch
from devicecore.cv.plan import Plan  # noqa: E402 - like the others
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURE = image(30, 40)
SMALL = cv2.resize(PICTURE, (20, 15))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was tried yet."""
    made = self_test.SelfTests()
    monkeypatch.setattr(self_test, "_self_tests", made)


@pytest.fixture
def ledger() -> Iterator[Any]:
    default_ledger().clear()
    yield default_ledger()
    default_ledger().clear()


@pytest.mark.every_case
@pytest.mark.parametrize("name", sorted(catalog.TORCH))
def test_parameters_are_opencvs(name: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    signatures = [
        tuple(re.findall(r"\w+", line.partition("(")[2].partition("->")[0]))
        for line in (native.original(name).__doc__ or "").splitlines()
        if line.startswith(f"{name}(")
    ]
    assert any(operation.parameters[: len(each)] == each for each in signatures)
    assert operation.name == name


@pytest.mark.every_case
@pytest.mark.parametrize("name", sorted(catalog.TORCH))
def test_every_kernel_passes_its_self_test(name: str) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    assert self_test.run_self_test(operation, host_cpu()) == ""


def test_what_has_no_kernel_is_opencvs_own() -> None:
    assert cv.INTER_AREA == cv2.INTER_AREA
    assert cv.imread is cv2.imread
    assert "resize" in dir(cv)
    assert "imdecode" in dir(cv)
    with pytest.raises(AttributeError):
        _ = cv.resizes


def test_on_the_cpu_opencv_itself_computes() -> None:
    found = cv.resize(PICTURE, (20, 15))
    assert type(found) is np.ndarray
    assert np.array_equal(found, SMALL)
    assert cv.resize.__name__ == "resize"
    assert cv.resize.__doc__ == cv2.resize.__doc__


def test_a_label_picks_the_kernels() -> None:
    with cv.using("torch"):
        found = cv.resize(PICTURE, (20, 15))
    assert np.array_equal(found, SMALL)
    assert found.flags.owndata
    assert found.flags.c_contiguous
    with cv.using("triton"), pytest.raises(NoKernelError, match="triton"):
        cv.resize(PICTURE, (20, 15))
    with cv.using("torch"), cv.using("native"):
        assert np.array_equal(cv.resize(PICTURE, (20, 15)), SMALL)
    with pytest.raises(ValueError, match="label"), cv.using("cuda"):  # type: ignore[arg-type]
        pytest.fail("entered")


def test_a_policy_is_also_a_decorator() -> None:
    @cv.using("torch")
    def shrunk() -> Any:
        return cv.resize(PICTURE, (20, 15), interpolation=cv2.INTER_CUBIC)

    with pytest.raises(NoKernelError, match="lsb1"):
        shrunk()
    accepted = cv.accept("lsb1")(shrunk)()
    off = accepted.astype(int) - cv2.resize(PICTURE, (20, 15), interpolation=cv2.INTER_CUBIC)
    assert abs(off).max() <= 1
    with pytest.raises(ValueError, match="promise"), cv.accept("host"):  # type: ignore[arg-type]
        pytest.fail("entered")


def test_tensors_stay_tensors_of_their_device() -> None:
    given = torch.from_numpy(PICTURE)
    for label in ("native", "torch"):
        with cv.using(label):
            found = cv.resize(given, (20, 15))
        assert isinstance(found, torch.Tensor)
        assert np.array_equal(found.numpy(), SMALL)
    plane = cv.cvtColor(given, cv2.COLOR_BGR2GRAY)
    assert plane.shape == (30, 40)


@pytest.mark.parametrize("label", ["native", "torch"])
def test_batches(label: Any) -> None:
    several = [PICTURE, PICTURE[:20], PICTURE, PICTURE[:, :9]]
    with cv.using(label):
        found = cv.resize(several, (20, 15))
        assert isinstance(found, list)
        for own, picture in zip(found, several, strict=True):
            assert np.array_equal(own, cv2.resize(picture, (20, 15)))
        stacked = cv.resize(np.stack([PICTURE] * 3), (20, 15))
        assert stacked.shape == (3, 15, 20, 3)
        assert np.array_equal(stacked[1], SMALL)
        planes = cv.resize(np.stack([PICTURE[..., :1]] * 3), (20, 15))
        assert planes.shape == (3, 15, 20, 1)
        tensors = cv.resize(torch.from_numpy(np.stack([PICTURE] * 2)), (20, 15))
        assert tensors.shape == (2, 15, 20, 3)
        assert np.array_equal(tensors[1].numpy(), SMALL)
        sums = cv.add([PICTURE, PICTURE], [PICTURE, PICTURE[::-1].copy()])
        assert np.array_equal(sums[1], cv2.add(PICTURE, PICTURE[::-1].copy()))
        with pytest.raises(ValueError, match="length"):
            cv.add([PICTURE], [PICTURE, PICTURE])


@pytest.mark.parametrize("label", ["native", "torch"])
def test_where_opencv_takes_a_list(label: Any) -> None:
    parts = cv2.split(PICTURE)
    with cv.using(label):
        assert np.array_equal(cv.merge(parts), PICTURE)
        several = cv.merge([list(parts), list(parts)[::-1]])
        assert np.array_equal(several[0], PICTURE)
        assert np.array_equal(several[1], PICTURE[..., ::-1])
        split = cv.split(PICTURE)
        assert all(np.array_equal(*pair) for pair in zip(split, parts, strict=True))


@pytest.mark.parametrize("label", ["native", "torch"])
def test_a_place_for_the_result(label: Any) -> None:
    fits, other = np.zeros_like(SMALL), np.zeros((3, 3, 3), np.uint8)
    with cv.using(label):
        assert cv.resize(PICTURE, (20, 15), fits) is fits
        assert np.array_equal(fits, SMALL)
        assert cv.resize(PICTURE, (20, 15), dst=other) is not other
        assert not other.any()
        own = PICTURE.copy()
        assert cv.flip(own, 1, own) is own
        assert np.array_equal(own, cv2.flip(PICTURE, 1))
        tensor = torch.zeros(15, 20, 3, dtype=torch.uint8)
        assert cv.resize(torch.from_numpy(PICTURE), (20, 15), tensor) is tensor
        assert np.array_equal(tensor.numpy(), SMALL)


@pytest.mark.parametrize("label", ["native", "torch"])
def test_odd_arrays(label: Any) -> None:
    frozen = PICTURE.copy()
    frozen.flags.writeable = False
    with cv.using(label):
        assert np.array_equal(cv.resize(frozen, (20, 15)), SMALL)
        turned = cv.resize(PICTURE[::-1, ::-1], (20, 15))
        assert np.array_equal(turned, cv2.resize(PICTURE[::-1, ::-1], (20, 15)))
        view = PICTURE[3:20, 5:31]
        assert np.array_equal(cv.resize(view, (20, 15)), cv2.resize(view, (20, 15)))


@pytest.mark.parametrize("label", ["native", "torch"])
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((PICTURE, (20.0, 15)), {}),
        ((PICTURE,), {}),
        ((PICTURE, (20, 15)), {"flag": 1}),
        ((PICTURE, (20, 15)), {"interpolation": 1.5}),
        ((PICTURE, (20, 15)), {"interpolation": True}),
        ((PICTURE, (-20, 15)), {}),
        ((np.zeros((0, 5, 3), np.uint8), (4, 4)), {}),
        (("picture", (20, 15)), {}),
        ((), {}),
    ],
)
def test_errors_are_opencvs(label: Any, args: Any, kwargs: Any) -> None:
    with pytest.raises(cv2.error) as theirs:
        cv2.resize(*args, **kwargs)
    with cv.using(label), pytest.raises(cv2.error) as ours:
        cv.resize(*args, **kwargs)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("name", sorted(catalog.HOST))
def test_what_is_listed_without_a_kernel_exists_in_opencv(name: str) -> None:
    assert name not in catalog.TORCH
    assert getattr(cv, name).__wrapped__ is getattr(cv2, name)


def test_opencv_answers_for_tensors_without_a_kernel(ledger: Any) -> None:
    numbers = image(12, 14, 1, "float32")
    tensor = torch.from_numpy(numbers)
    assert np.array_equal(cv.exp(tensor).numpy(), cv2.exp(numbers))
    place = torch.zeros(12, 14)
    assert cv.exp(tensor[..., 0], dst=place) is place
    assert np.array_equal(place.numpy(), cv2.exp(numbers))
    both = cv.exp([tensor, tensor[:5]])
    assert [tuple(each.shape) for each in both] == [(12, 14), (5, 14)]
    assert ledger.total == 0
    with cv.using("torch"), pytest.raises(NoKernelError):
        cv.exp(tensor)


def test_such_answers_are_in_the_ledger_of_other_devices(elsewhere: Any, ledger: Any) -> None:
    pictures = [PICTURE, PICTURE[:9]]
    for found, picture in zip(cv.stackBlur(pictures, (3, 3)), pictures, strict=True):
        assert np.array_equal(found, cv2.stackBlur(picture, (3, 3)))
    assert {move.source for move in ledger.moves()} == {elsewhere.name}


def test_strict_forbids_opencv_to_answer() -> None:
    with cv.strict(), cv.using("torch"), pytest.raises(NoKernelError):
        cv.resize(image(9, 9, 3, "float64"), (4, 4))
    with cv.strict():
        assert np.array_equal(cv.resize(PICTURE, (20, 15)), SMALL)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device that says it is no CPU, as torch's kernels see it; it computes on the host."""
    from devicecore import Device

    device = Device("/device:ACME:0", torch_device="cpu")
    monkeypatch.setattr("devicecore.cv.dispatch.current_device", lambda: device)
    return device


def test_what_no_kernel_computes_is_in_the_ledger(elsewhere: Any, ledger: Any) -> None:
    assert np.array_equal(cv.resize(PICTURE, (20, 15)), SMALL)
    assert ledger.total == 0
    found = cv.resize(PICTURE, (20, 15), interpolation=cv2.INTER_CUBIC)
    assert np.array_equal(found, cv2.resize(PICTURE, (20, 15), interpolation=cv2.INTER_CUBIC))
    [move] = ledger.moves()
    assert (move.op, move.source, move.target) == ("cv2.resize", elsewhere.name, host_cpu().name)
    assert "lsb1" in move.reason
    with ledger.limited_to(0), pytest.raises(FallbackForbiddenError):
        cv.resize(PICTURE, (20, 15), interpolation=cv2.INTER_CUBIC)
    with cv.strict(), pytest.raises(NoKernelError, match="lsb1"):
        cv.resize(PICTURE, (20, 15), interpolation=cv2.INTER_CUBIC)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("fault", ["wrong", "raises"])
def test_a_kernel_that_breaks_its_promise_is_left_out(
    fault: str, elsewhere: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = catalog.find("flip", "torch")
    assert operation is not None

    def broken(images: Any) -> Any:
        if fault == "raises":
            raise RuntimeError
        return images + 1

    monkeypatch.setattr(
        type(operation), "plan", lambda *_: Plan(broken) if _[0] is operation else None
    )
    assert np.array_equal(cv.flip(PICTURE, 1), cv2.flip(PICTURE, 1))
    ops = {move.op: move.reason for move in ledger.moves()}
    assert "self-test" in ops["cv2.flip[torch]"]
    assert "self-test" in ops["cv2.flip"]


def test_kernels_are_those_of_the_registry() -> None:
    device = default_runtime().device("cpu")
    found = device.compute("cv2.resize", PICTURE, (20, 15))
    assert np.array_equal(found, SMALL)
    kernel = get_kernel("cv2.resize", device, label="torch")
    there = device.compute(kernel, torch.from_numpy(PICTURE), (20, 15))
    assert np.array_equal(there.numpy(), SMALL)


def test_a_scope_of_another_framework_changes_nothing() -> None:
    with device_scope("meta"), cv.using("native"):
        assert np.array_equal(cv.resize(PICTURE, (20, 15)), SMALL)


@pytest.mark.skipif(IS_OLD, reason="OpenCV 4 has another rule for numbers")
def test_zeros_of_both_signs_are_different_arguments() -> None:
    numbers = np.array([[1, -2, 3, 4] * 5], np.float32)
    with cv.using("torch"):
        for zero in (0.0, -0.0, (0.0,) * 4, (-0.0,) * 4):
            assert np.array_equal(cv.divide(numbers, zero), cv2.divide(numbers, zero))
        with pytest.raises(cv2.error):
            cv.divide(numbers, np.float32(2))  # OpenCV takes no such number


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_images_that_lie_elsewhere_go_along(kind: str) -> None:
    picture, other = image(6, 8), image(6, 8, seed=1)
    second = other if kind == "array" else torch.from_numpy(other)
    with cv.using("torch"):
        found = cv.add(torch.from_numpy(picture), second)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), cv2.add(picture, other))


def test_images_that_do_not_go_together() -> None:
    single, several = torch.zeros(4, 5, 3, dtype=torch.uint8), torch.zeros(2, 4, 5, 3).byte()
    for pair in ((single, several), (several[:1], several), (several, several.repeat(2, 1, 1, 1))):
        with cv.using("torch"), pytest.raises(ValueError, match="same length"):
            cv.add(*pair)
    with cv.using("torch"), pytest.raises(ValueError, match="one device"):
        cv.add(single, single.to("meta"))
    with cv.using("torch"):
        assert cv.add(several, several[:1]).shape == several.shape
