"""What a model is opened with: checked when it is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.errors import ModelError
from devicecore.onnx import OnnxModel, session_options
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.model_digest import model_digest
from devicecore.ort.tiny_model import tiny_model

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threads": 2.5}, "threads is 2.5; it is a whole number from 1"),
        ({"threads": -3}, "threads is -3"),
        ({"precision": "fp32"}, "precision is 'fp32'; it can be 'f32' or 'default'"),
    ],
)
def test_models_and_sessions_of_ones_own_are_told_the_same(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        OnnxModel(tiny_model(), **options)
    with pytest.raises(ValueError, match=said):
        session_options("cpu", **options)


def test_bytes_of_any_kind_and_nothing_else() -> None:
    data = tiny_model()
    digests = {OnnxModel(kind(data)).digest for kind in (bytes, bytearray, memoryview)}
    assert len(digests) == 1
    for wrong in (None, 3, ["model.onnx"]):
        with pytest.raises(TypeError, match="a model is a file's path or its bytes, not a"):
            OnnxModel(wrong)  # type: ignore[arg-type]


def test_values_of_options_are_written_as_onnxruntime_reads_them() -> None:
    model = OnnxModel(
        Path("model.onnx"),
        provider_options={"CUDAExecutionProvider": {"gpu_mem_limit": 2_000_000, "use_tf32": False}},
        session_options={"session.disable_prepacking": True},
    )
    cuda = {"gpu_mem_limit": "2000000", "use_tf32": "0"}
    assert model.provider_options == {"CUDAExecutionProvider": cuda}
    assert model.session_options == {"session.disable_prepacking": "1"}


@pytest.mark.parametrize("feeds", [[np.ones((2, 4), np.float32)], None, 3])
def test_arrays_go_by_name(feeds: Any) -> None:
    device = Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))
    with pytest.raises(ModelError, match="instead of arrays by the names of the inputs"):
        device.compute(OnnxModel(tiny_model()), feeds)


def test_a_place_of_weights_that_no_file_can_have_is_left_to_onnxruntime() -> None:
    plain = model_digest(tiny_model())
    for size, name in ((b"\x88\x27", b"w" * 5000), (b"\x03", b"w\0w")):
        told = model_digest(tiny_model() + b"\x0a\x08location\x12" + size + name)
        assert told != plain
