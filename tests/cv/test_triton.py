"""Triton's kernels in its interpreter, which computes on the host; `test_cuda_cv.py` has a GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("triton")

from devicecore.cv import catalog

PREPROCESS = """
import numpy as np, torch
from devicecore.cv.recipe import PreprocessRecipe, normalized_bytes
from devicecore.cv.ops.preprocess import triton as preprocess_triton
from tests.cv.differential import image
from tests.cv.test_preprocess import MEAN, STD, expected
torch.cuda.current_device = lambda: None  # as the index of the host
preprocess_triton.BLOCK, preprocess_triton.BLURRED_ROWS = 32, 8
calls = [
    ("letterbox", (5, 5), "NCHW", 3),
    ("crop", None, "NHWC", 3),
    ("stretch", (7, 3), "NCHW", 1),
]
for mode, blur, layout, channels in calls:
    values = normalized_bytes(MEAN[:channels], STD[:channels], channels, torch.float32)
    recipe = PreprocessRecipe((26, 19), mode, 114, channels == 3, blur, values, layout)
    pictures = [image(31, 22, channels), image(9, 40, channels)]
    found = preprocess_triton.run(pictures, recipe, torch.device("cpu"))
    if layout == "NHWC":
        found = found.permute(0, 3, 1, 2)
    for own, picture in zip(found, pictures, strict=True):
        wanted = expected(picture, (26, 19), mode, blur, swap=channels == 3)
        assert np.array_equal(own.numpy(), wanted), (mode, blur, layout, channels)
    print(mode, channels)
"""

FUNCTIONS = """
import torch
from devicecore.cv import catalog
from devicecore.cv.self_test import run_self_test
from devicecore.cv.triton_support import strips
from devicecore.runtime import host_cpu
import tests.cv.interpreting
torch.cuda.current_device = lambda: None  # as the index of the host
strips.BLOCK, strips.ROWS = 16, 4
for name in {names!r}:
    assert not (reason := run_self_test(catalog.find(name, "triton"), host_cpu())), (name, reason)
    print(name)
"""

GROUPS = 5  # of functions: the interpreter takes minutes for all of them

NUMBERS = """
import numpy as np, torch
from devicecore.cv import catalog
import tests.cv.interpreting
torch.cuda.current_device = lambda: None  # as the index of the host
threshold = catalog.find("threshold", "triton").run
for shape in ((4, 8, 3), (4, 7, 3), (2, 4, 8, 3)):  # at once, in groups, and several
    picture = torch.zeros(shape, dtype=torch.uint8)
    threshold(None, picture, 100, 255, 0)[0].mul_(3)
    print(threshold(None, picture, 100, 255, 0)[0].tolist())
"""


def interpreted(code: str) -> list[str]:
    """Run *code* in a child where Triton interprets, and return the lines that it prints."""
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    child = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=850,
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.splitlines()


def test_preprocess() -> None:
    assert len(interpreted(PREPROCESS)) == 3


@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS))
def test_functions(group: int) -> None:
    names = sorted(catalog.TRITON)[group::GROUPS]
    assert interpreted(FUNCTIONS.format(names=names)) == names


def test_numbers_are_memory_of_their_own() -> None:
    assert interpreted(NUMBERS) == ["100.0", "100.0", "[100.0, 100.0]"]
