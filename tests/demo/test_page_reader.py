"""The page reader, on real pages and against RapidOCR with the same models."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from devicecore.cli.page_reader.images import load_image
from devicecore.cli.page_reader.models import find_models
from devicecore.cli.page_reader.reader import Page, read_page
from devicecore.cli.page_reader.recognition import Reading, decode
from devicecore.device import Device
from devicecore.errors import MissingDependencyError, ModelError, NotLiveError
from devicecore.optional import package_dir

Pixels = NDArray[np.uint8]

if package_dir("rapidocr") is None:
    pytest.skip(
        "rapidocr, whose wheel carries the models, is not installed", allow_module_level=True
    )

# What the page says; the two underscores are beyond the models.
PAGE = [
    "Region-based segmentation",
    "Let us first determine markers of the coins and the",
    "background. These markers are pixels that we can label",
    "unambiguously as either object or background. Here,",
    "the markers are found at the two extreme parts of the",
    "histogram of grey values:",
    "markers = np.zeros like(coins)",
]


@pytest.fixture(scope="module")
def read(cpu: Device) -> Callable[[Pixels], Page]:
    models = find_models()
    return lambda image: read_page(image, device=cpu, host=cpu, models=models)


def test_the_default_page_is_read(read: Callable[[Pixels], Page], samples: Path) -> None:
    page = read(load_image(samples / "page.png"))
    assert [line.text for line in page.lines] == PAGE
    assert np.mean([line.score for line in page.lines]) >= 0.90
    assert page.models == "PP-OCRv6"
    assert list(page.seconds) == ["load", "prepare", "detect", "cut", "recognise"]


def test_boxes_lie_where_the_lines_are(read: Callable[[Pixels], Page], samples: Path) -> None:
    image = load_image(samples / "page.png")
    lines = read(image).lines
    tops = [line.box[0][1] for line in lines]
    assert tops == sorted(tops)
    for line in lines:
        (x0, y0), (x1, _), (x2, y2), _ = line.box
        assert 0 <= x0 < x1 <= image.shape[1]
        assert 0 <= y0 < y2 <= image.shape[0]
        inside = image[int(y0) : int(y2), int(x0) : int(x2)]
        assert inside.std() > image[:5, :5].std()  # ink, not bare paper


def test_the_words_of_a_comic_are_read(read: Callable[[Pixels], Page], comic: Pixels) -> None:
    assert [line.text for line in read(comic).lines] == [
        "WHERE IS THE",
        "DEVICE?",
        "NOT HERE!",
        "LOOK BEHIND YOU",
        "IT WAS LIVE",
        "ALL ALONG",
    ]


@pytest.mark.parametrize("photo", ["coffee.png", "chelsea.png", "astronaut.png", "moon.png"])
def test_a_photo_without_text_has_none(
    photo: str, read: Callable[[Pixels], Page], samples: Path
) -> None:
    assert read(load_image(samples / photo)).lines == ()


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (3, 900), (40, 40)])
def test_an_empty_image_of_any_shape_has_no_text(
    shape: tuple[int, int], read: Callable[[Pixels], Page]
) -> None:
    assert read(np.full((*shape, 3), 255, np.uint8)).lines == ()


def test_a_single_letter_counts_only_if_it_is_sure(read: Callable[[Pixels], Page]) -> None:
    image = Image.new("RGB", (300, 200), "white")
    ImageDraw.Draw(image).text((120, 60), "8", "black", ImageFont.load_default(80))
    (line,) = read(np.asarray(image)).lines
    assert line.text == "8"
    assert line.score >= 0.95


@pytest.mark.parametrize("kind", ["16 bits", "grey with alpha", "JPEG"])
def test_the_kind_of_file_does_not_matter(
    kind: str, read: Callable[[Pixels], Page], samples: Path, tmp_path: Path
) -> None:
    grey = np.asarray(Image.open(samples / "page.png").convert("L"))
    file = tmp_path / ("page.jpg" if kind == "JPEG" else "page.png")
    if kind == "16 bits":
        Image.fromarray(grey.astype(np.uint16) * 257).save(file)
    elif kind == "grey with alpha":
        Image.fromarray(np.dstack([grey, np.full_like(grey, 255)])).save(file)
    else:
        Image.fromarray(grey).save(file, quality=95)
    texts = [line.text for line in read(load_image(file)).lines]
    assert len(texts) == 7
    assert texts[:4] == PAGE[:4]


def test_black_words_on_nothing_are_read(read: Callable[[Pixels], Page], tmp_path: Path) -> None:
    image = Image.new("LA", (400, 120))
    ImageDraw.Draw(image).text((40, 40), "LOOK BEHIND YOU", (0, 255), ImageFont.load_default(30))
    image.save(tmp_path / "a.png")
    assert [line.text for line in read(load_image(tmp_path / "a.png")).lines] == ["LOOK BEHIND YOU"]


# --- against RapidOCR, which runs the same models -------------------------------------------------


def _turned(image: Pixels) -> Pixels:
    return np.asarray(Image.fromarray(image).rotate(5, expand=True, fillcolor="white"))


def _scaled(image: Pixels, factor: float) -> Pixels:
    size = (round(image.shape[1] * factor), round(image.shape[0] * factor))
    return np.asarray(Image.fromarray(image).resize(size))


VARIANTS: dict[str, Callable[[Pixels, Pixels], Pixels]] = {
    "page": lambda page, comic: page,
    "comic": lambda page, comic: comic,
    "turned": lambda page, comic: _turned(page),
    "upright": lambda page, comic: np.ascontiguousarray(np.rot90(page)),
    "large": lambda page, comic: _scaled(page, 6),
    "small": lambda page, comic: _scaled(page, 0.5),
    "strip": lambda page, comic: page[64:100],
    "low": lambda page, comic: page[64:86],
    "wide": lambda page, comic: np.hstack([page[60:100]] * 4),
    "dark": lambda page, comic: 255 - page,
}


@pytest.fixture(scope="module")
def rapidocr() -> Any:
    # It rates no line by its turn here, since neither do we.
    rapid = pytest.importorskip("rapidocr", exc_type=ImportError)
    return rapid.RapidOCR(params={"Global.use_cls": False, "Global.log_level": "critical"})


@pytest.mark.filterwarnings("ignore")  # another project's warnings
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_answer_is_rapidocrs(
    variant: str,
    read: Callable[[Pixels], Page],
    rapidocr: Any,
    samples: Path,
    comic: Pixels,
) -> None:
    image = np.ascontiguousarray(VARIANTS[variant](load_image(samples / "page.png"), comic))
    theirs = rapidocr(np.ascontiguousarray(image[..., ::-1]))
    rows = [
        (text, score, box)
        for text, score, box in zip(
            theirs.txts or (), theirs.scores or (), theirs.boxes if theirs.txts else (), strict=True
        )
        if len(text.strip()) > 1
    ]
    ours = [line for line in read(image).lines if len(line.text.strip()) > 1]
    assert rows
    assert [line.text for line in ours] == [text for text, _, _ in rows]
    np.testing.assert_allclose([line.score for line in ours], [s for _, s, _ in rows], atol=1e-3)
    np.testing.assert_allclose([line.box for line in ours], [b for _, _, b in rows], atol=1)


# --- the parts ------------------------------------------------------------------------------------


def test_decoding_drops_repeats_and_blanks() -> None:
    steps = [1, 1, 0, 1, 2, 2, 0, 0]
    probabilities = np.full((1, len(steps), 3), 0.1, np.float32)
    probabilities[0, range(len(steps)), steps] = [0.8, 0.9, 0.9, 0.6, 0.7, 0.9, 0.9, 0.9]
    (reading,) = decode(probabilities, ("", "a", "b"))
    assert reading.text == "aab"
    assert reading.score == pytest.approx((0.8 + 0.6 + 0.7) / 3)
    blank = np.zeros((1, 4, 3), np.float32)
    blank[..., 0] = 1
    assert decode(blank, ("", "a", "b")) == [Reading("", 0.0)]


def test_the_wheel_is_not_imported() -> None:
    import subprocess

    code = "import sys; from devicecore.cli.page_reader.models import find_models; find_models();"
    code += "print('rapidocr' in sys.modules, 'onnxruntime' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"


def _wheel(folder: Path, name: str, *models: str) -> None:
    (folder / name / "models").mkdir(parents=True)
    (folder / name / "__init__.py").write_text("raise ImportError", encoding="ascii")
    for model in models:
        (folder / name / "models" / model).write_bytes(b"")


def test_the_newest_models_win_whatever_wheel_they_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ("ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx")
    _wheel(tmp_path, "one_ocr", *old)
    _wheel(tmp_path, "two_ocr", "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx", *old)
    _wheel(tmp_path, "half_ocr", "PP-OCRv6_det_small.onnx")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_models(("one_ocr", "two_ocr")).folder == tmp_path / "two_ocr" / "models"
    fallback = find_models(("half_ocr", "one_ocr"))
    assert fallback.generation == "PP-OCRv4"
    assert fallback.detector.name == "ch_PP-OCRv4_det_infer.onnx"
    with pytest.raises(MissingDependencyError, match=r"devicecore\[demo\]"):
        find_models(("half_ocr", "no_ocr"))


def test_a_recogniser_without_a_dictionary_is_refused(cpu: Device, tmp_path: Path) -> None:
    from devicecore.cli.page_reader.models import TextModels
    from devicecore.onnx import OnnxModel
    from devicecore.ort.tiny_model import tiny_model

    mute = OnnxModel(tiny_model())
    models = TextModels("PP-OCRv4", mute, mute, tmp_path)
    with pytest.raises(ModelError, match="does not say what its classes stand for"):
        models.characters(cpu)
    (tmp_path / "ppocr_keys_v1.txt").write_text("a\nb\n", encoding="utf-8")
    assert models.characters(cpu) == ("", "a", "b", " ")


def test_a_device_without_a_provider_is_an_error(cpu: Device) -> None:
    npu = Device("/device:NPU:0", device_class="NPU")
    with pytest.raises(NotLiveError, match="ONNX Runtime has no provider for it"):
        read_page(np.zeros((9, 9, 3), np.uint8), device=npu, host=cpu)
