"""Strategies and recordings on devices without float64, which the fakes of `device_limits` are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv.device_types import missing_types  # noqa: E402 - after torch
from devicecore.errors import RefusedCallError  # noqa: E402
from devicecore.ledger import default_ledger  # noqa: E402
from devicecore.migrate import DeviceLoader, PipelineMigrator  # noqa: E402
from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.migrate.recording.execution import compute_frames, compute_node  # noqa: E402
from devicecore.migrate.strategies.catalog import COMPUTED  # noqa: E402
from tests.cv.device_limits import MPS, XPU, Limits, Refusing  # noqa: E402
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.comparing import assert_near, registry  # noqa: E402
from tests.migrate.loader.batches import same  # noqa: E402

LIMITS = [pytest.param(each, id=each.device_type) for each in (MPS, XPU)]
CHANCE = np.random.default_rng(3)
LINE = CHANCE.normal(0, 9, (2, 240)).astype(np.float32)
LONG = (CHANCE.normal(5, 2, 40_000) + np.linspace(0, 300, 40_000)).astype(np.float32)
SQUARE = (CHANCE.normal(0, 1, (6, 6)) + 6 * np.eye(6)).astype(np.float32)
SPD = (SQUARE @ SQUARE.T).astype(np.float32)
IMAGE = CHANCE.random((31, 40, 3)).astype(np.float32)
WAVES = LINE[:, :6] + 1j * LINE[:, 6:12]
SECTIONS = np.array([[1, 0.5, 0, 1, -0.3, 0.1]], np.float32)


def image(kind: Any) -> Any:
    pillow = pytest.importorskip("PIL.Image")
    return pillow.fromarray((IMAGE * 255).astype(np.uint8)).convert(kind)


EXAMPLES: dict[str, list[tuple[Any, ...]]] = {
    "numpy.argsort": [(LINE, -1, "stable")],
    "numpy.dot": [(SQUARE, SPD)],
    "numpy.einsum": [("ij,jk->ik", SQUARE, SPD)],
    "numpy.fft.fft": [(LINE,)],
    "numpy.fft.fft2": [(SQUARE,)],
    "numpy.fft.fftn": [(SQUARE,)],
    "numpy.fft.ifft": [(WAVES,)],
    "numpy.fft.ifft2": [(WAVES,)],
    "numpy.fft.ifftn": [(WAVES,)],
    "numpy.fft.irfft": [(WAVES,)],
    "numpy.fft.rfft": [(LINE,)],
    "numpy.inner": [(SQUARE, SPD)],
    "numpy.linalg.cholesky": [(SPD,)],
    "numpy.linalg.det": [(SQUARE,)],
    "numpy.linalg.eigvalsh": [(SPD,)],
    "numpy.linalg.inv": [(SQUARE,)],
    "numpy.linalg.norm": [(SQUARE,)],
    "numpy.linalg.solve": [(SQUARE, SPD)],
    "numpy.linalg.svd": [(SPD, True, False)],
    "numpy.matmul": [(SQUARE, SPD)],
    "numpy.mean": [(LINE,)],
    "numpy.sort": [(LINE,)],
    "numpy.std": [(LINE,)],
    "numpy.sum": [(LINE,)],
    "numpy.tensordot": [(SQUARE, SPD, 1)],
    "numpy.var": [(LINE,)],
    "scipy.signal.convolve": [(LINE[0], LINE[1, :9])],
    "scipy.signal.correlate": [(LINE[0], LINE[1, :9])],
    "scipy.signal.detrend": [(LINE,), (LINE, -1, "constant"), (LONG,), (LONG + 1j * LONG,)],
    "scipy.signal.fftconvolve": [(LINE[0], LINE[1, :9])],
    "scipy.signal.filtfilt": [([1.0, 0.5], [1.0, -0.3], LINE)],
    "scipy.signal.hilbert": [(LINE,)],
    "scipy.signal.istft": [(np.stack([WAVES] * 5, 1)[0].T,)],
    "scipy.signal.lfilter": [([1.0, 0.5], [1.0, -0.3], LINE)],
    "scipy.signal.oaconvolve": [(LINE[0], LINE[1, :9])],
    "scipy.signal.resample": [(LINE, 77, None, -1), (LINE, 300, None, -1, "hamming")],
    "scipy.signal.resample_poly": [(LINE, 3, 2, 1)],
    "scipy.signal.sosfilt": [(SECTIONS, LINE)],
    "scipy.signal.sosfiltfilt": [(SECTIONS, LINE)],
    "scipy.signal.spectrogram": [
        (LINE, 1.0, "hann", 64, None, None, detrend) for detrend in ("constant", "linear", False)
    ],
    "scipy.signal.stft": [(LINE, 1.0, "hann", 64)],
    "scipy.signal.upfirdn": [(LINE[0, :9], LINE, 3, 2)],
    "scipy.spatial.distance.cdist": [(LINE[:, :6], SQUARE)],
    "scipy.spatial.distance.pdist": [(SQUARE,)],
    "sklearn.metrics.pairwise.cosine_similarity": [(SQUARE, SPD)],
    "skimage.transform._warps.resize": [(IMAGE, (20, 50))],
}  # fmt: skip
# Those that compute with doubles also where the result is none, or whose results are doubles.
DOUBLES = frozenset(
    {f"scipy.signal.{name}" for name in ("filtfilt", "lfilter", "sosfilt", "sosfiltfilt")}
    | {"scipy.spatial.distance.cdist", "scipy.spatial.distance.pdist"}
)
WORDS = "float64|complex128"


def function(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(pytest.importorskip(module), attribute)


def computed(limits: Limits, name: str, args: tuple[Any, ...]) -> Any:
    module, _, attribute = name.rpartition(".")
    strategy = registry().find(module, attribute)
    assert strategy is not None
    options = Options(kernel="torch", accept="close")
    with Refusing(limits):
        return strategy.compute(limits.device(), options, function(name), args, {})


def of_type(value: Any, single: Any, double: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return value
    return value.astype(double if value.dtype.kind == "c" else single)


def test_there_is_an_example_of_each_strategy() -> None:
    names = {name for names in COMPUTED.values() for name in names}
    others = {name for name in names if name.startswith(("librosa.", "PIL."))}
    assert names - others == set(EXAMPLES)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_single_precision_is_computed(name: str, limits: Limits) -> None:
    for example in EXAMPLES[name]:
        args = tuple(of_type(each, np.float32, np.complex64) for each in example)
        if name in DOUBLES:
            with pytest.raises(RefusedCallError, match=WORDS):
                computed(limits, name, args)
            continue
        expected = function(name)(*args)
        assert_near(computed(limits, name, args), expected, is_exact=False, rounding=4e-5)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_double_precision_is_left_to_the_host(name: str, limits: Limits) -> None:
    for example in EXAMPLES[name]:
        args = tuple(of_type(each, np.float64, np.complex128) for each in example)
        with pytest.raises(RefusedCallError, match=WORDS):
            computed(limits, name, args)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA"])
def test_pillows_resize(kind: str, limits: Limits) -> None:
    strategy = registry().find("PIL.Image", "Image.resize")
    assert strategy is not None
    picture = image(kind)
    options = Options(kernel="torch", accept="tolerance")
    resize = import_module("PIL.Image").Image.resize
    with Refusing(limits):
        found = strategy.compute(limits.device(), options, resize, (picture, (20, 50)), {})
    np.testing.assert_array_equal(np.asarray(found), np.asarray(picture.resize((20, 50))))


@pytest.mark.parametrize("limits", LIMITS)
def test_a_refusal_is_no_fault(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devicecore.migrate.migrator.resolve_device", Resolved(limits))
    plan = {"numpy.mean": {"device": "mps", "accept": "tolerance"}}
    with PipelineMigrator(plan) as migrator:
        for _ in range(5):
            with Refusing(limits):
                assert np.mean(np.arange(9.0)) == 4
                assert np.mean(LINE).dtype == np.float32
    (row,) = migrator.report().rows
    assert (row.calls, row.migrated) == (10, 5)
    (reason,) = row.reasons
    assert "float64, which the device has not" in reason
    assert any(reason in move.reason for move in default_ledger().moves())


class Resolved:
    """Stands for the resolution on a machine with such a device."""

    def __init__(self, limits: Limits) -> None:
        self.device = limits.device()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self


NOISE = CHANCE.normal(0, 1, (12, 16, 3))


def half(picture: Any) -> Any:
    small = cv2.resize(picture, (16, 12))
    return cv2.GaussianBlur(small, (3, 3), 0).astype(np.float32) / np.float32(255)


def doubles(picture: Any) -> Any:
    return cv2.resize(picture, (16, 12)) / 255.0


def through_doubles(picture: Any) -> Any:
    small = cv2.resize(picture, (16, 12)).astype(np.float32)
    return small, (small * NOISE).astype(np.float32)


def by_doubles(picture: Any) -> Any:
    small = cv2.resize(picture, (16, 12)).astype(np.int32)
    return (small > 127.5).astype(np.uint8)


STEPS = {"half": True, "doubles": False, "through_doubles": False, "by_doubles": False}


class Pictures(torch.utils.data.Dataset):  # type: ignore[name-defined,misc] # it has no types
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        picture = np.random.default_rng(index).integers(0, 256, (24, 30, 3), np.uint8)
        return globals()[self.kind](picture), index


@pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels")
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", STEPS)
def test_batches(kind: str, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(*args: Any, **how: Any) -> Any:
        with Refusing(limits):
            return compute_frames(*args, **how)

    monkeypatch.setattr("devicecore.migrate.recording.execution.compute_frames", limited)
    resolved = Resolved(limits)
    monkeypatch.setattr("devicecore.migrate.loader.device_loader.resolve", resolved)
    with Refusing(limits):
        missing_types(resolved.device)
    dataset = Pictures(kind)
    plan = {
        f"cv2.{name}": {"device": "cpu", "kernel": "torch"} for name in ("resize", "GaussianBlur")
    }
    loader = DeviceLoader(dataset, plan, batch_size=2)
    same(list(loader), list(torch.utils.data.DataLoader(dataset, batch_size=2)))
    row = loader.report().rows[0]
    assert row.calls == 3
    assert row.migrated == (3 if STEPS[kind] else 0), row.reasons
    assert all("has no float64" in reason for reason in row.reasons)
    assert not any("switched off" in reason for reason in row.reasons)


@pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels")
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", STEPS)
def test_frames(kind: str, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(*args: Any, **how: Any) -> Any:
        with Refusing(limits):
            return compute_node(*args, **how)

    resolved = Resolved(limits)
    monkeypatch.setattr("devicecore.migrate.recording.execution.compute_node", limited)
    monkeypatch.setattr("devicecore.migrate.migrator.resolve_device", resolved)
    with Refusing(limits):
        missing_types(resolved.device)
    dataset = Pictures(kind)
    expected = [dataset[index] for index in range(5)]
    key = f"{__name__}:Pictures/__getitem__"
    plan = {key: {"device": "mps", "kernel": "torch", "residency": "scoped"}}
    with PipelineMigrator(plan) as migrator:
        found = [dataset[index] for index in range(5)]
    for one_found, other in zip(found, expected, strict=True):
        np.testing.assert_equal(one_found, other)
    reasons = [reason for row in migrator.report().rows for reason in row.reasons]
    assert bool(reasons) != STEPS[kind]
    assert all("has no float64" in reason for reason in reasons), reasons
