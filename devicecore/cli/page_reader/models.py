"""The text models, found inside an installed wheel that is never imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.errors import MissingDependencyError, ModelError
from devicecore.onnx import OnnxModel
from devicecore.optional import package_dir

if TYPE_CHECKING:
    from pathlib import Path

    from devicecore.device import Device

# The wheels that carry such models, and the generations of them, best first.
_WHEELS = ("rapidocr", "rapidocr_onnxruntime")
_GENERATIONS = ("PP-OCRv6", "PP-OCRv5", "PP-OCRv4")
_DICTIONARY_KEY = "character"
_DICTIONARY_FILE = "ppocr_keys_v1.txt"


@frozen
class TextModels:
    """A detector of text lines, and a recogniser of what they say.

    Attributes:
        generation: Which models they are, such as ``"PP-OCRv6"``.
        detector: From an image to a map of how likely each pixel belongs to text.
        recogniser: From images of lines to the probabilities of characters, left to right.
        folder: Where they lie.
    """

    generation: str
    detector: OnnxModel
    recogniser: OnnxModel
    folder: Path

    def characters(self, device: Device) -> tuple[str, ...]:
        """Return what the recogniser's classes stand for; class 0 stands for nothing.

        The model carries them itself, or a file of its wheel does.

        Raises:
            ModelError: Neither does.
        """
        listed = self.recogniser.session(device).metadata.get(_DICTIONARY_KEY)
        file = self.folder / _DICTIONARY_FILE
        if listed is None and file.is_file():
            listed = file.read_text(encoding="utf-8")
        if listed is None:
            raise ModelError(self.recogniser.name, "it does not say what its classes stand for")
        return ("", *listed.splitlines(), " ")


def find_models(wheels: tuple[str, ...] = _WHEELS) -> TextModels:
    """Return the best text models among the installed *wheels*.

    Raises:
        MissingDependencyError: None of the wheels is installed, or none carries models.
    """
    folders = [folder / "models" for wheel in wheels if (folder := package_dir(wheel))]
    for generation in _GENERATIONS:
        for folder in folders:
            detectors = sorted(folder.glob(f"*{generation}_det*.onnx"))
            recognisers = sorted(folder.glob(f"*{generation}_rec*.onnx"))
            if detectors and recognisers:
                return TextModels(
                    generation, OnnxModel(detectors[0]), OnnxModel(recognisers[0]), folder
                )
    raise MissingDependencyError(wheels[0], "demo")
