"""The digest of a model that names very many files of weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from devicecore.errors import ModelError
from devicecore.ort.model_digest import model_digest
from devicecore.ort.tiny_model import tiny_model


def with_weights(*names: bytes) -> bytes:
    """Return the bytes of a model that says of its weights that they lie there."""
    said = (b"\x0a\x08location\x12" + bytes([len(name)]) + name for name in names)
    return tiny_model() + b"".join(said)


def test_more_files_than_a_process_can_map_are_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devicecore.ort.model_digest._MOST_FILES", 3)
    model = tmp_path / "m.onnx"
    model.write_bytes(with_weights(b"a", b"b", b"c", b"a", b"b", b"c"))
    assert len(model_digest(model)) == 64
    model.write_bytes(with_weights(b"a", b"b", b"c", b"d"))
    for given in (model, model.read_bytes()):
        with pytest.raises(ModelError, match="more than 3 files of weights; keep the weights"):
            model_digest(given)


def test_files_that_take_turns_are_each_read_once(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(with_weights(*[b"a", b"b"] * 1000))
    digests = set()
    for name in ("a", "b"):
        for content in (b"one", b"two"):
            (tmp_path / name).write_bytes(content)
            digests.add(model_digest(model))
    assert len(digests) == 4


@pytest.mark.parametrize("path", ["a\0b", "\0", "\ud800.onnx"])
def test_a_text_that_is_no_path_is_one_of_our_errors(path: str) -> None:
    for given in (path, Path(path)):
        with pytest.raises(ModelError, match="it cannot be the path of a file"):
            model_digest(given)
