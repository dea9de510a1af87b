"""Image files of every kind, and what is wrong with those that are none."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from devicecore.cli.page_reader.images import ImageError, draw_boxes, load_image, save_image
from devicecore.cli.page_reader.output import prepare_folder, write_page
from devicecore.device import Device

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)
WORDS = np.minimum(RAMP * np.uint32(257) + 100, 65535).astype(np.uint16)


def write(path: Path, values: NDArray[Any], mode: str | None = None) -> Path:
    image = Image.fromarray(values)
    (image.convert(mode) if mode else image).save(path)
    return path


def grey(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.repeat(values[:, :, np.newaxis], 3, axis=2).astype(np.uint8)


def test_colours_come_red_first(tmp_path: Path) -> None:
    image = np.zeros((4, 5, 3), np.uint8)
    image[..., 0] = 200
    np.testing.assert_array_equal(load_image(write(tmp_path / "a.png", image)), image)


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    np.testing.assert_array_equal(load_image(write(tmp_path / "a.png", WORDS)), grey(RAMP))


def test_floats_are_shares_of_one_or_levels(tmp_path: Path) -> None:
    share = write(tmp_path / "share.tif", RAMP.astype(np.float32) / 255)
    level = write(tmp_path / "level.tif", RAMP.astype(np.float32))
    np.testing.assert_array_equal(load_image(share), grey(RAMP))
    np.testing.assert_array_equal(load_image(level), grey(RAMP))


@pytest.mark.parametrize("mode", ["L", "P", "1", "CMYK", "RGB"])
def test_every_mode_becomes_three_channels(mode: str, tmp_path: Path) -> None:
    black_and_white = np.where(RAMP > 127, np.uint8(255), np.uint8(0))
    kind = "jpg" if mode == "CMYK" else "png"
    file = tmp_path / f"a.{kind}"
    Image.fromarray(black_and_white).convert(mode).save(file, quality=100)
    loaded = load_image(file)
    assert loaded.shape == (16, 16, 3)
    assert loaded.dtype == np.uint8
    np.testing.assert_allclose(loaded.astype(int), grey(black_and_white), atol=4)


@pytest.mark.parametrize(("ink", "paper"), [(0, 255), (255, 0)], ids=["dark", "light"])
def test_what_is_transparent_contrasts_with_what_is_not(
    ink: int, paper: int, tmp_path: Path
) -> None:
    alpha = np.zeros((8, 8), np.uint8)
    alpha[2:4] = 255
    file = write(tmp_path / "a.png", np.dstack([np.full((8, 8), ink, np.uint8), alpha]))
    with Image.open(file) as image:
        assert image.mode == "LA"
    expected = np.full((8, 8), paper)
    expected[2:4] = ink
    np.testing.assert_array_equal(load_image(file), grey(expected))


def test_a_transparent_palette_is_seen_on_white(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([0, 0, 0, 0, 0, 255])
    image.putpixel((1, 1), 1)
    image.save(tmp_path / "a.png", transparency=0)
    loaded = load_image(tmp_path / "a.png")
    assert loaded[0, 0].tolist() == [255, 255, 255]
    assert loaded[1, 1].tolist() == [0, 0, 255]


def test_a_photo_is_turned_as_the_camera_was(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    Image.fromarray(grey(RAMP[:4])).save(tmp_path / "a.png", exif=exif)
    assert load_image(tmp_path / "a.png").shape == (16, 4, 3)


def test_one_pixel_is_an_image(tmp_path: Path) -> None:
    assert load_image(write(tmp_path / "a.png", RAMP[:1, :1])).shape == (1, 1, 3)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file"),
        (b"", "it is no image"),
        (b"This is a text.\n" * 40, "it is no image"),
        (b"\x89PNG\r\n\x1a\n", "it is"),
    ],
    ids=["missing", "empty", "text", "signature only"],
)
def test_what_is_no_image_is_said_in_one_line(
    content: bytes | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "page.png"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ImageError, match=reason) as caught:
        load_image(file)
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("kind", ["png", "jpg", "gif", "webp", "tif", "bmp"])
@pytest.mark.parametrize("left", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_damaged(kind: str, left: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8))
    file = tmp_path / f"a.{kind}"
    image.save(file)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * left)])
    with pytest.raises(ImageError, match="it is"):
        load_image(file)


def test_a_damaged_middle_is_damaged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = write(tmp_path / "a.png", rng.integers(0, 256, (64, 64, 3), np.uint8))
    data = bytearray(file.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    file.write_bytes(data)
    with pytest.raises(ImageError, match="it is damaged"):
        load_image(file)


def test_a_folder_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="it is a folder"):
        load_image(tmp_path)


def test_an_image_too_large_to_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ImageError, match="exceeds limit"):
        load_image(write(tmp_path / "a.png", RAMP))


def test_boxes_are_drawn_on_a_copy(cpu: Device) -> None:
    image = np.full((40, 60, 3), 255, np.uint8)
    drawn = draw_boxes(image, [((10, 5), (50, 5), (50, 30), (10, 30))], cpu)
    assert (image == 255).all()
    assert drawn[5, 30].tolist() == drawn[20, 10].tolist() == [255, 0, 0]
    assert drawn[20, 30].tolist() == [255, 255, 255]


def test_an_image_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="it cannot be written"):
        save_image(tmp_path / "gone" / "a.png", grey(RAMP))


def test_results_never_overwrite_the_page_itself(tmp_path: Path) -> None:
    page = write(tmp_path / "page.png", grey(RAMP))
    before = page.read_bytes()
    with pytest.raises(ImageError, match="it would be overwritten"):
        prepare_folder(tmp_path, page)
    assert page.read_bytes() == before


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="ascii")
    with pytest.raises(ImageError, match="it cannot be written"):
        prepare_folder(tmp_path / "out", tmp_path / "a.png")


def test_a_folder_is_made(tmp_path: Path, cpu: Device) -> None:
    folder = tmp_path / "new" / "out"
    prepare_folder(folder, tmp_path / "a.png")
    assert list(folder.iterdir()) == []
    report = {"device": "", "lines": [], "seconds": {}}
    assert write_page(folder, grey(RAMP), report, cpu) == (
        folder / "page.png",
        folder / "page.json",
    )
