"""Pillow's sizes of images by torch: the same pixels, or a refusal."""

from __future__ import annotations

import importlib
import io
import sys
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from devicecore.errors import RefusedCallError  # noqa: E402 - after torch
from devicecore.migrate import PipelineMigrator  # noqa: E402
from devicecore.migrate.strategies import pillow  # noqa: E402
from tests.migrate.comparing import Strategies  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = Strategies(Image, "PIL.Image", accept="exact")
BANDS = {"L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4, "YCbCr": 3}
FILTERS = (None, 0, 1, 2, 3, 4, 5)
PLAN = {"device": "cpu", "kernel": "torch"}


def image(mode: str = "RGB", width: int = 43, height: int = 31) -> Any:
    values = np.random.default_rng(0).integers(0, 256, width * height * BANDS[mode])
    found = Image.frombytes(mode, (width, height), values.astype(np.uint8).tobytes())
    found.info["dpi"] = (72, 72)
    return found


def check(one: Any, *args: Any, **kwargs: Any) -> None:
    """Fail unless an image gets the size that it gets by Pillow, and is left as it is."""
    before = one.tobytes()
    assert_same(EXACT.compute("Image.resize", one, *args, **kwargs), one.resize(*args, **kwargs))
    assert one.tobytes() == before


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert (found.mode, found.size, found.info) == (expected.mode, expected.size, expected.info)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("mode", BANDS)
@pytest.mark.parametrize("kind", FILTERS)
def test_sizes(mode: str, kind: int | None) -> None:
    sizes = ((17, 11), (60, 70), (1, 1), (43, 10), (10, 31), (300, 3), (3, 300), (33, 133))
    for size in sizes:
        check(image(mode), size, kind)
        check(image(mode, 2, 5), size, kind)
        check(image(mode, 1, 1), (3, 2), kind)


@pytest.mark.parametrize("kind", FILTERS)
def test_parts(kind: int | None) -> None:
    boxes = ((0.3, 0.2, 42.75, 30.5), (0, 0, 14.4, 4), [7, 2, 30, 31], (0, 0, 43, 15.5))
    for box, size in product(boxes, ((17, 11), (60, 70), (43, 31), (300, 3), (3, 300))):
        check(image(), size, kind, box)
    check(image("L"), [20, 10], resample=kind, box=(1.5, 0, 4, 30), reducing_gap=8.0)


@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.sampled_from(FILTERS),
)
def test_any_sizes(size: tuple[int, int], wanted: tuple[int, int], kind: int | None) -> None:
    if size == wanted:
        EXACT.refuse("the size is the same", "Image.resize", image("L", *size), wanted, kind)
    else:
        check(image("L", *size), wanted, kind)


@given(
    st.tuples(st.integers(1, 200), st.integers(1, 200)),
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.sampled_from(FILTERS),
    st.sampled_from((1, 1.0, 1.1, 1.5, 2.0, 3.0)),
    st.sampled_from(("L", "RGBA")),
    st.booleans(),
)
def test_gaps(
    size: tuple[int, int],
    wanted: tuple[int, int],
    kind: int | None,
    gap: float,
    mode: str,
    is_part: bool,
) -> None:
    box = (size[0] * 0.1, 0, size[0] * 0.95, size[1] * 0.9) if is_part else None
    try:
        check(image(mode, *size), wanted, kind, box, gap)
    except RefusedCallError:
        left, top, right, bottom = box or (0, 0, *size)
        factors = int((right - left) / wanted[0] / gap), int((bottom - top) / wanted[1] / gap)
        assert max(factors) > 1 or size == wanted or (right - left, bottom - top) == wanted


@pytest.mark.parametrize("kind", FILTERS[1:])
def test_photographs(kind: int) -> None:
    skimage = pytest.importorskip("skimage.data")
    check(Image.fromarray(skimage.astronaut()), (224, 224), kind)
    check(Image.fromarray(skimage.camera()), (640, 333), kind)


def test_what_is_left_to_pillow() -> None:
    one = image()

    def refuse(reason: str, given: Any, *args: Any, **kwargs: Any) -> None:
        EXACT.refuse(reason, "Image.resize", given, *args, **kwargs)

    for mode in ("1", "P", "I", "F", "LA", "I;16"):
        refuse(f"pixels are {mode}", Image.new(mode, (9, 9)), (4, 4))
    refuse("pixels are None", "image", (4, 4))
    refuse("the filter is 99", one, (4, 4), 99)
    refuse("the size is", one, (4, 4, 4))
    refuse("the size is", one, (4, 0))
    refuse("the size is", one, (4.0, 4))
    refuse("the size is the same", one, (43, 31))
    refuse("it is only cut out", one, (4, 4), box=(1, 1, 5, 5))
    refuse("the box is", one, (4, 4), box=(1, 1, 1, 5))
    refuse("the box is", one, (4, 4), box=(-1, 1, 4, 5))
    refuse("the box is", one, (4, 4), box=(1, 1, 4, 32))
    refuse("shrunk in two steps", one, (4, 4), reducing_gap=2.0)
    refuse("the reducing gap is 0.5", one, (40, 30), reducing_gap=0.5)
    refuse("the reducing gap is nan", one, (40, 30), reducing_gap=float("nan"))
    refuse("the filter is 1.0", one, (4, 4), 1.0)
    refuse("the box is", one, (4, 4), box=("1", 1, 4, 5))
    refuse("it is too large", one, (1 << 16, 1 << 16))
    refuse("there are no pixels", Image.new("L", (0, 3)), (4, 4))


def test_another_pillow_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pillow, "_known", dict)
    known: dict[Any, Any] = {}
    monkeypatch.setattr(pillow, "_known", lambda: known)
    resize = Image.Image.resize

    def rounded(self: Any, *args: Any) -> Any:
        return resize(self, *args).point(lambda value: value & ~1)

    strategy = EXACT.function("Image")
    monkeypatch.setattr(strategy, "resize", rounded)
    EXACT.refuse("this Pillow has other pixels", "Image.resize", image(), (4, 4), 2)


# --- by a plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["PIL.Image:Image/resize", "PIL.Image.Image.resize"])
def test_a_method_by_its_name(name: str) -> None:
    resize, expected = Image.Image.resize, image().resize((20, 10))
    with PipelineMigrator({name: PLAN}, strict=True, verify=2) as migrator:
        for _ in range(4):
            assert_same(image().resize((20, 10)), expected)
    [row] = migrator.report().rows
    assert (row.path, row.migrated) == ("PIL.Image:Image/resize", 4)
    assert Image.Image.resize is resize


def jpeg(width: int, height: int, mode: str) -> Any:
    """Return an image that is opened, and not read yet: it is shrunk while it is."""
    file = io.BytesIO()
    image(mode, width, height).save(file, "jpeg")
    return Image.open(file)


@pytest.mark.parametrize("gap", [None, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I", "F", "I;16", "CMYK"])
def test_thumbnails(mode: str, gap: float | None) -> None:
    def made(kind: int, width: int, height: int) -> list[Any]:
        plain = image(mode if mode in BANDS else "L", width, height).convert(mode)
        images = [plain, jpeg(width, height, mode)] if mode in {"L", "RGB", "CMYK"} else [plain]
        for one in images:
            with suppress(ValueError):  # Pillow cannot shrink I;16 in two steps
                one.thumbnail((19, 23), kind, gap)
        return images

    cases = list(product(FILTERS[1:], ((300, 40), (40, 300), (19, 200), (61, 67), (90, 5))))
    expected = [made(kind, *size) for kind, size in cases]
    with PipelineMigrator({"PIL.Image:Image.resize": PLAN}) as migrator:
        for (kind, size), others in zip(cases, expected, strict=True):
            for one, other in zip(made(kind, *size), others, strict=True):
                assert_same(one, other)
    assert bool(migrator.report().rows[0].migrated) == (mode in BANDS)


SOURCE = """
from PIL import Image

class Thumbnails:
    def __getitem__(self, place):
        return Image.new("RGB", (40, 30), (place, 20, 30)).resize((7, 9), Image.Resampling.LANCZOS)
"""


def test_images_in_a_frame(write: Callable[..., None]) -> None:
    write(made_data=SOURCE)
    data = importlib.import_module("made_data").Thumbnails()
    expected = data[3]
    with PipelineMigrator({"Thumbnails/__getitem__": PLAN}) as migrator:
        assert_same(data[3], expected)
    rows = {row.path.rpartition("PIL")[2]: row.migrated for row in migrator.report().rows}
    assert rows[".Image:Image/resize"] == 1


def test_pillow_may_be_imported_later(write: Callable[..., None], tmp_path: Any) -> None:
    import subprocess

    write(made_data=SOURCE.replace("from PIL import Image\n", "").replace("        return", (
        "        from PIL import Image\n        return"
    )))  # fmt: skip
    program = (
        "import made_data\n"
        "from devicecore.migrate import PipelineMigrator\n"
        "plan = {'Thumbnails/__getitem__': {'device': 'cpu', 'kernel': 'torch'}}\n"
        "with PipelineMigrator(plan) as m:\n"
        "    made_data.Thumbnails()[3]\n"
        "print([row.path for row in m.report().rows])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "PIL.Image:Image/resize" in done.stdout, done.stderr


# --- scikit-image ---------------------------------------------------------------------------------


def warps() -> Strategies:
    module = pytest.importorskip("skimage.transform._warps")
    return Strategies(module, "skimage.transform._warps")


@pytest.mark.parametrize("dtype", ["B", "h", "i", "f", "d"])
@pytest.mark.parametrize("mode", ["reflect", "edge", "symmetric"])
def test_sizes_of_arrays(dtype: str, mode: str) -> None:
    values = np.random.default_rng(0).uniform(0, 1 if dtype in "fd" else 99, (40, 31, 3))
    values = values.astype(dtype)
    orders = (None, 1) if mode == "symmetric" else (None, 1, 2, 3)
    for shape, order in product(((20, 50), [50, 10, 2]), orders):
        warps().check("resize", values, shape, order, mode)
    warps().check("resize", values[::-1, ::2], (50, 45, 3), mode=mode, clip=False)
    warps().check("resize", values, (7, 33), mode=mode, anti_aliasing=False)
    warps().check("resize", values[..., 0], (20, 30), preserve_range=True, mode=mode)
    warps().check("resize", values, (40, 31), mode=mode)


def test_photographs_as_arrays() -> None:
    skimage = pytest.importorskip("skimage.data")
    warps().check("resize", skimage.astronaut(), (224, 224))


def test_what_is_left_to_scikit_image() -> None:
    values = np.random.default_rng(0).uniform(0, 1, (40, 31, 3))
    warps().refuse("the mode is 'constant'", "resize", values, (20, 20), mode="constant")
    warps().refuse("the order is 0", "resize", values, (20, 20), 0)
    warps().refuse("the order is 2", "resize", values, (20, 20), 2, "symmetric")
    warps().refuse("the blur is given", "resize", values, (20, 20), anti_aliasing_sigma=1)
    warps().refuse("other axes", "resize", values, (20, 20, 3, 1))
    warps().refuse("the shape is", "resize", values, (20.5, 20))
    warps().refuse("cval is given", "resize", values, (20, 20), cval=1)
    warps().refuse("infinities or NaNs", "resize", values * np.nan, (9, 9))
    warps().refuse("it is no image", "resize", values > 0, (20, 20))
    warps().refuse("an axis is too long", "resize", values, (5000, 20))


def test_scikit_images_own_name_and_what_calls_it() -> None:
    transform = pytest.importorskip("skimage.transform")
    values = np.random.default_rng(0).uniform(0, 1, (40, 31))
    expected = transform.resize(values, (20, 20)), transform.rescale(values, 0.5)
    plan = {"device": "cpu", "kernel": "torch", "accept": "tolerance"}
    names = ("skimage.transform.resize", "skimage.transform.rescale")
    with PipelineMigrator(dict.fromkeys(names, plan), verify=1) as migrator:
        found = transform.resize(values, (20, 20)), transform.rescale(values, 0.5)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)
    rows = {row.path: row.migrated for row in migrator.report().rows}
    inner = "skimage.transform._warps:resize"
    assert rows[inner] == rows[f"skimage.transform._warps:rescale/{inner}"] == 1
