"""Functions of other packages on a real CUDA GPU: what the packages themselves return."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from devicecore.device_factory import default_registry
from devicecore.migrate import PipelineMigrator
from devicecore.migrate.strategies.torchvision import CLASSES
from devicecore.resolution import resolve
from tests.migrate.comparing import Strategies
from tests.migrate.strategies import test_moved_strategy as moved
from tests.migrate.strategies import test_torchvision as transforms
from tests.migrate.strategies import test_transformers as padding

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.hardware


@pytest.fixture(autouse=True)
def gpu() -> Any:
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], "torch")
    if not found.is_live:
        pytest.skip(f"CUDA for torch is {found.state}: {found.reason}")
    return resolve("cuda:0", framework="torch").device


def noise(*shape: int, dtype: str = "d") -> Any:
    values = np.random.default_rng(0).standard_normal((2, *shape)) * 3
    return (values[0] + 1j * values[1] if dtype in "FD" else values[0]).astype(dtype)


def of(name: str, gpu: Any, **how: Any) -> Strategies:
    """Return the strategies of a module, or skip where it is not installed."""
    return Strategies(pytest.importorskip(name), name, device=gpu, scale=100, **how)


@pytest.mark.parametrize("dtype", "fdFD")
def test_signals(dtype: str, gpu: Any) -> None:
    near = of("scipy.signal", gpu)
    x, y = noise(3, 4000, dtype=dtype), noise(3, 200, dtype=dtype)
    sums = Strategies(near.owner, near.name, device=gpu, scale=5000)
    for name in ("convolve", "correlate", "fftconvolve", "oaconvolve"):
        sums.check(name, x, y, "same")
    near.check("lfilter", y[0], [1.0], x)
    near.check("lfilter", [0.2, 0.3], [1, -0.5], x)
    sections = near.owner.butter(2, 0.4, output="sos")
    near.check("sosfilt", sections, x, zi=np.zeros((1, 3, 2), x.dtype))
    near.check("sosfiltfilt", sections, x)
    for count in (1000, 1001, 8000):
        near.check("resample", x, count, axis=1)
    near.check("resample_poly", x, 160, 441, axis=-1)
    near.check("upfirdn", y[0], x, 3, 2)
    is_real = dtype in "fd"
    near.check("stft", x, return_onesided=is_real)
    near.check("spectrogram", x, return_onesided=is_real)
    spectra = near.function("stft")(x, window="hamming", return_onesided=is_real)[2]
    near.check("istft", spectra, window="hamming", input_onesided=is_real)
    near.check("istft", spectra * 1j, window="hamming", input_onesided=is_real)
    near.check("detrend", x, bp=[1000])
    if is_real:
        near.check("hilbert", x)


def test_sums_of_integers(gpu: Any) -> None:
    exact = of("scipy.signal", gpu, accept="exact")
    x = np.random.default_rng(0).integers(-1000, 1000, (4000,))
    exact.check("convolve", x, x[:300])


def test_distances(gpu: Any) -> None:
    near = of("scipy.spatial.distance", gpu)
    one, two = noise(200, 64), noise(100, 64)
    for metric in (
        "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
        "hamming", "minkowski", "seuclidean", "sqeuclidean",
    ):  # fmt: skip
        near.check("cdist", one, two, metric)
        near.check("pdist", two, metric)
    for metric in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"):
        near.check("cdist", one > 0, two > 0, metric)


@pytest.mark.parametrize("dtype", "fdFD")
def test_arrays(dtype: str, gpu: Any) -> None:
    near = of("numpy", gpu)
    one, two = noise(5, 60, 70, dtype=dtype), noise(5, 70, 30, dtype=dtype)
    near.check("matmul", one, two)
    near.check("tensordot", one, two, ([0, -1], [0, 1]))
    near.check("einsum", "bij,bjk->bik", one, two)
    square = noise(4, 9, 9, dtype=dtype) + 9 * np.eye(9, dtype=dtype)
    near.check("linalg.inv", square)
    near.check("linalg.solve", square[0], square[1])
    near.check("linalg.svd", one[0], compute_uv=False)
    near.check("linalg.norm", one, axis=1)
    for name in ("sum", "mean", *(("var", "std") if dtype in "fd" else ())):
        near.check(name, one, (0, 2))
    for name in ("fft", "ifft", "irfft", "fft2", "fftn"):
        near.check(f"fft.{name}", one)


@pytest.mark.parametrize("dtype", "fdilhbB")
def test_orders(dtype: str, gpu: Any) -> None:
    exact = of("numpy", gpu, accept="exact")
    values = noise(5, 600).astype(dtype) + np.zeros((), dtype)
    exact.check("sort", values)
    exact.check("argsort", values, 0, kind="stable")


@pytest.mark.parametrize("kind", range(6))
def test_sizes_of_pillow(kind: int, gpu: Any) -> None:
    image = pytest.importorskip("PIL.Image")
    exact = Strategies(image, "PIL.Image", device=gpu, accept="exact")
    for mode, bands in (("L", 1), ("RGB", 3), ("RGBA", 4)):
        values = np.random.default_rng(0).integers(0, 256, 400 * 300 * bands).astype(np.uint8)
        given = image.frombytes(mode, (400, 300), values.tobytes())
        for size in ((224, 224), (500, 31), (30, 500)):
            found = exact.compute("Image.resize", given, size, kind)
            assert found.tobytes() == given.resize(size, kind).tobytes()


def test_sizes_of_scikit_image(gpu: Any) -> None:
    near = of("skimage.transform._warps", gpu)
    near.check("resize", noise(90, 80, 3) / 9, (64, 100))


def test_tensors_come_back(gpu: Any) -> None:
    rows = [torch.arange(count) for count in (3, 1, 2)]
    of("torch.nn.utils.rnn", gpu, accept="exact").check("pad_sequence", rows, batch_first=True)
    one, two = torch.randn(50, 3), torch.randn(50, 3)
    of("torch.nn.functional", gpu).check("cosine_similarity", one, two)


@pytest.mark.parametrize("module", ["transforms.functional", "transforms.v2.functional"])
def test_functions_of_torchvision(module: str, gpu: Any) -> None:
    pytest.importorskip("torchvision")
    importlib.import_module(f"torchvision.{module}")
    exact = of(f"torchvision.{module}", gpu, accept="exact")
    image = torch.randint(0, 256, (3, 40, 30)).byte()
    exact.check("hflip", image)
    exact.check("pad", image, [1, 2])
    exact.check("crop", image, 3, 4, 10, 11)
    close = of(f"torchvision.{module}", gpu, accept="close", rounding=0.05)
    close.check("resize", image.float(), [20, 20], antialias=True)
    close.check("normalize", image.float(), [0.5] * 3, [0.2] * 3)


def migrated(name: str, promise: str, call: Any) -> Any:
    """Return what calls give that have to be computed on the GPU."""
    plan = {name: {"device": "cuda:0", "kernel": "torch", "accept": promise}}
    with PipelineMigrator(plan, strict=True) as migrator:
        found = call()
    [row] = migrator.report().rows
    assert row.migrated == row.calls
    return found


@pytest.mark.filterwarnings("ignore")  # theirs, of empty filters and of names of theirs
@pytest.mark.parametrize("method", transforms.NAMES)
def test_classes_of_transforms(method: str) -> None:
    owner, name = transforms.public(method), method.split(".")[-2]
    transform, given = transforms.made(owner, name), transforms.inputs(owner, name)
    promise = CLASSES[method.partition(".")[0]].promises.get(method.rpartition(".")[0], "close")
    expected = transforms.seeded(transform, given)
    found = migrated(
        f"{owner.__name__}.{name}", promise, lambda: transforms.seeded(transform, given)
    )
    assert found[-1] == expected[-1]
    assert found[-2].equal(expected[-2])

    def leaves(results: Any) -> list[Any]:
        known = torch.utils._pytree.tree_leaves(results)
        return [each for each in known if torch.is_tensor(each)]

    for one, other in zip(leaves(found[:-2]), leaves(expected[:-2]), strict=True):
        assert (one.device, one.dtype, one.shape) == (other.device, other.dtype, other.shape)
        if promise == "exact":
            assert one.equal(other)
        elif one.numel():
            off = (one.cfloat() - other.cfloat()).abs()
            # Single pixels may come from elsewhere where a place is rounded otherwise.
            assert off.mean() <= 0.01 * other.cfloat().abs().max()


def test_steps_after_an_image_of_pillow() -> None:
    moved.module_of("torchvision.transforms")
    v1, image = (
        importlib.import_module("torchvision.transforms"),
        importlib.import_module("PIL.Image"),
    )
    given = image.fromarray(moved.IMAGE.permute(1, 2, 0).numpy())
    steps = v1.Compose([v1.Resize((20, 20)), v1.ToTensor(), v1.Normalize([0.5] * 3, [0.2] * 3)])
    found = migrated("torchvision.transforms.Compose", "close", lambda: steps(given))
    torch.testing.assert_close(found, steps(given))


def test_masks_and_padding(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = of("torch.nn.modules.transformer", gpu, accept="exact")
    exact.check("Transformer.generate_square_subsequent_mask", 50)
    tokenizer = padding.stand_in(monkeypatch)
    rows = padding.encodings([5, 0, 9], {"attention_mask", "token_type_ids"})[::-1]
    for side in ("left", "right"):
        how = {"return_tensors": "pt", "padding_side": side}
        found = padding.padded(tokenizer, rows, device=gpu, **how)
        padding.assert_same(found, tokenizer.pad(rows, **how))


def test_a_tokenizer_of_transformers() -> None:
    tokenizer = padding.tokenizer_of_transformers()
    rows = [dict(tokenizer(text)) for text in padding.TEXTS]

    def call() -> Any:
        return tokenizer.pad(rows, return_tensors="pt")

    padding.assert_same(migrated("transformers.PreTrainedTokenizerBase/pad", "exact", call), call())
