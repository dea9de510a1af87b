"""`as_tensor` and `to_numpy`: what is shared, what is copied, and what has no counterpart."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from devicecore import as_tensor, to_numpy
from devicecore.errors import TransferError

torch = pytest.importorskip("torch")


def shares(tensor: Any, array: Any) -> bool:
    before = array.copy()
    array[...] = 1 - array
    changed = bool((tensor.numpy() != before).all())
    array[...] = before
    return changed


def test_a_writable_array_is_shared() -> None:
    array = np.zeros((2, 3), np.float32)
    tensor = as_tensor(array, "cpu")
    assert shares(tensor, array)
    assert shares(torch.from_numpy(to_numpy(tensor)), array)


@pytest.mark.parametrize(
    "view",
    [lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a[1:, ::-2]],
    ids=["rows", "columns", "both"],
)
def test_negative_strides_are_copied_where_torch_would_end_the_process(view: Any) -> None:
    array = view(np.arange(12.0).reshape(3, 4))
    assert min(array.strides) < 0
    assert as_tensor(array, "cpu").tolist() == array.tolist()


class Exporter:
    """An array that knows nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._array.__dlpack_device__()
        return device


def test_negative_strides_behind_dlpack_are_copied_too() -> None:
    """In a process of its own: what is guarded against is one that aborts."""
    code = """
import sys; sys.path[:] = {path!r}
import numpy as np
from tests.transfer.test_arrays import Exporter
from devicecore import as_tensor, to_numpy
array = np.arange(6.0)[::-2]
assert as_tensor(Exporter(array), "cpu").tolist() == array.tolist()
assert to_numpy(Exporter(array)).tolist() == array.tolist()
"""
    subprocess.run(
        [sys.executable, "-c", code.format(path=[".", *sys.path])], check=True, timeout=120
    )


def test_an_array_behind_dlpack_is_shared() -> None:
    array = np.zeros(4)
    assert shares(as_tensor(Exporter(array), "cpu"), array)


def test_a_read_only_array_is_copied() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = as_tensor(array, "cpu")
    tensor += 1
    assert array.tolist() == [0, 1, 2]
    assert to_numpy(array) is array


def test_an_array_that_is_not_aligned_is_copied() -> None:
    array = np.zeros(9, np.uint8)[1:].view(np.float64)
    assert not array.flags.aligned
    assert as_tensor(array, "cpu").tolist() == [0.0]
    packed = np.zeros(3, [("a", "u1"), ("b", "<u2")])["b"]
    assert as_tensor(packed, "cpu").tolist() == [0, 0, 0]


def test_the_other_order_of_bytes_is_turned() -> None:
    array = np.array([1, 2, 3], ">i4")
    tensor = as_tensor(array, "cpu")
    assert tensor.dtype == torch.int32
    assert tensor.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "dtype",
    ["bool", *(kind + size for kind in "ui" for size in "1248"), "f2", "f4", "f8", "c8", "c16"],
)
def test_every_element_type_goes_there_and_back(dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    tensor = as_tensor(array, "cpu")
    assert str(tensor.dtype).removeprefix("torch.") == array.dtype.name
    back = to_numpy(tensor)
    assert back.dtype == array.dtype
    assert (back == array).all()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_elements_of_ml_dtypes_go_there_and_back(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([0.5, -2.0, 1.0]).astype(getattr(ml_dtypes, name))
    tensor = as_tensor(array, "cpu")
    assert tensor.dtype == getattr(torch, name)
    assert tensor.float().tolist() == [0.5, -2.0, 1.0]
    back = to_numpy(tensor)
    assert back.dtype == array.dtype
    assert back.astype(float).tolist() == [0.5, -2.0, 1.0]


def test_shapes_without_elements_and_without_dimensions() -> None:
    assert as_tensor(np.zeros((0, 3)), "cpu").shape == (0, 3)
    assert as_tensor(np.float32(2.5), "cpu").item() == 2.5
    assert as_tensor(np.array(3), "cpu").shape == ()
    assert to_numpy(torch.tensor(4)).shape == ()
    assert to_numpy(torch.zeros(0, 2)).shape == (0, 2)


def test_numbers_and_lists_are_taken() -> None:
    assert as_tensor([[1, 2], [3, 4]], "cpu").tolist() == [[1, 2], [3, 4]]
    assert as_tensor(1.5, "cpu").item() == 1.5
    assert to_numpy([[1, 2]]).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.array(["text"]), "no elements like"),
        (np.array([object()]), "no elements like object"),
        (np.array(["2020-01-01"], "datetime64[D]"), "no elements like datetime64"),
        (np.zeros(2, [("a", "f4")]), "no elements like"),
        (np.zeros(2, np.longdouble), "no elements like"),
        (np.ma.masked_array([1, 2], [True, False]), "its mask would be lost"),
        (object(), "nothing like this builtins.object"),
        ("text", "nothing like this builtins.str"),
    ],
    ids=["text", "object", "date", "structure", "longdouble", "mask", "no array", "a text"],
)
def test_what_torch_lacks_is_an_error(value: Any, reason: str) -> None:
    with pytest.raises(TransferError, match=f"^x cannot be moved: .*{reason}"):
        as_tensor(value, "cpu")


def test_a_tensor_goes_to_numpy_with_its_values() -> None:
    assert to_numpy(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    assert to_numpy(torch.nn.Parameter(torch.ones(2))).tolist() == [1, 1]
    number = torch.tensor([1 + 2j])
    assert to_numpy(number.conj()).tolist() == [1 - 2j]
    assert to_numpy(number.conj().imag).tolist() == [-2]


def quantized() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch will remove them one day
        return torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: torch.eye(2).to_sparse(), "to_dense"),
        (quantized, "dequantize"),
        (lambda: torch.empty(2, device="meta"), "no values"),
    ],
    ids=["sparse", "quantized", "meta"],
)
def test_a_tensor_without_plain_values_is_refused(make: Any, word: str) -> None:
    with pytest.raises(TransferError, match=word):
        to_numpy(make())


def test_numpy_refuses_what_is_no_array() -> None:
    with pytest.raises(TransferError, match=r"nothing like this builtins\.object"):
        to_numpy(object())
    with pytest.raises(TransferError, match=r"nothing like this builtins\.list"):
        to_numpy([[1], [2, 3]])


def test_a_tensor_is_moved_on_the_way() -> None:
    tensor = torch.ones(2)
    assert as_tensor(tensor, "cpu") is tensor
    assert as_tensor(np.ones(2), "meta").device.type == "meta"


def test_values_of_onnx_runtime() -> None:
    ort = pytest.importorskip("onnxruntime")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert as_tensor(value, "cpu").tolist() == array.tolist()
    assert to_numpy(value).tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int64])
def test_a_value_of_onnx_runtime_is_shared(dtype: Any) -> None:
    ort = pytest.importorskip("onnxruntime")
    value = ort.OrtValue.ortvalue_from_numpy(np.ones((2, 3), dtype))
    tensor = as_tensor(value, "cpu")
    assert tensor.dtype == torch.from_numpy(np.ones(1, dtype)).dtype
    assert tensor.data_ptr() == value.data_ptr()
    tensor.zero_()
    assert not value.numpy().any()
    del value
    assert tensor.sum() == 0
    empty = ort.OrtValue.ortvalue_from_numpy(np.ones((0, 3), dtype))
    assert as_tensor(empty, "cpu").shape == (0, 3)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_values_of_onnx_runtime_that_it_cannot_read(name: str) -> None:
    ort, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    array = np.array([1, 2], getattr(pytest.importorskip("ml_dtypes"), name))
    words = array.view({1: np.uint8, 2: np.uint16}[array.itemsize])
    element = getattr(onnx.TensorProto, name.replace("_", "").upper())
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(words, element)
    assert to_numpy(value).dtype == array.dtype
    assert to_numpy(value).tolist() == as_tensor(value, "cpu").tolist() == [1, 2]
