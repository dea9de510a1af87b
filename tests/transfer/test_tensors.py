"""Moving tensors of torch: views, strides, parameters; objects that move themselves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from devicecore.errors import TransferError
from devicecore.transfer import tensors_to_device

torch = pytest.importorskip("torch")


def is_moved(value: Any) -> bool:
    return bool(value.device.type == "meta")


def test_strides_are_kept() -> None:
    transposed = torch.zeros(3, 4).t()
    channels_last = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    moved = tensors_to_device([transposed, channels_last, torch.zeros(4, 4)[:, 1]], "meta")
    assert [each.stride() for each in moved[:2]] == [transposed.stride(), channels_last.stride()]
    assert moved[1].is_contiguous(memory_format=torch.channels_last)
    assert moved[2].shape == (4,)


def test_an_expanded_tensor_stays_small() -> None:
    value = torch.ones(1).expand(1000, 1000)
    moved = tensors_to_device(value, "meta")
    assert moved.shape == (1000, 1000)
    assert moved.stride() == (0, 0)
    assert moved.untyped_storage().nbytes() == 4
    rows = tensors_to_device(torch.ones(3, 1).expand(3, 1000), "meta")
    assert rows.untyped_storage().nbytes() == 12


def test_views_of_one_tensor_stay_views_of_one() -> None:
    base = torch.arange(12.0)
    moved = tensors_to_device({"a": base, "b": base[4:8], "c": base.view(3, 4).t()}, "meta")
    storages = {each.untyped_storage()._cdata for each in moved.values()}
    assert len(storages) == 1
    assert moved["b"].storage_offset() == 4
    assert moved["c"].stride() == (1, 4)


def test_views_that_lie_over_each_other_share_only_what_they_span() -> None:
    base = torch.zeros(1_000_000)
    moved = tensors_to_device([base[10:20], base[15:25]], "meta")
    assert moved[0].untyped_storage()._cdata == moved[1].untyped_storage()._cdata
    assert moved[0].untyped_storage().nbytes() == 60


def test_pieces_that_do_not_overlap_do_not_take_their_whole_along() -> None:
    base = torch.zeros(1_000_000)
    moved = tensors_to_device([base[:10], base[-10:]], "meta")
    assert [each.untyped_storage().nbytes() for each in moved] == [40, 40]


def test_a_few_columns_of_a_long_matrix_are_moved_alone() -> None:
    matrix = torch.zeros(1000, 1000)
    moved = tensors_to_device([matrix[:, 0], matrix[:, 1]], "meta")
    assert sum(each.untyped_storage().nbytes() for each in moved) == 8000


def test_views_of_other_element_types_share_too() -> None:
    base = torch.zeros(8, dtype=torch.float32)
    words = base.view(torch.int32)
    pairs = torch.view_as_complex(base.view(4, 2))
    moved = tensors_to_device([base, words, pairs], "meta")
    assert len({each.untyped_storage()._cdata for each in moved}) == 1
    assert [each.dtype for each in moved] == [torch.float32, torch.int32, torch.complex64]


def test_one_memory_behind_two_storages() -> None:
    array = np.zeros(8, np.float32)
    first, second = torch.from_numpy(array), torch.from_numpy(array[4:])
    moved = tensors_to_device([first, second], "meta")
    assert [each.shape for each in moved] == [(8,), (4,)]


def test_lazy_signs_and_conjugates_are_right_where_they_go() -> None:
    number = torch.tensor([1 + 2j, 3 - 4j])
    conjugate, negative = number.conj(), number.conj().imag
    moved = tensors_to_device([number, conjugate, negative], "meta", coalesce=True)
    assert all(is_moved(each) for each in moved)
    assert [each.shape for each in moved] == [(2,)] * 3


def test_a_leaf_that_needs_a_gradient_keeps_its_link() -> None:
    value = torch.ones(3, requires_grad=True)
    moved = tensors_to_device([value], "meta")[0]
    assert moved.requires_grad
    assert moved.grad_fn is not None
    assert value.is_leaf


def test_a_parameter_becomes_a_tensor_with_a_link() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    moved = tensors_to_device(parameter, "meta")
    assert type(moved) is torch.Tensor
    assert moved.grad_fn is not None
    assert tensors_to_device(parameter, "cpu") is parameter


def test_sparse_tensors_are_moved_by_torch() -> None:
    eye = torch.eye(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls CSR a beta
        values = [eye.to_sparse(), eye.to_sparse_csr()]
        moved = tensors_to_device(values, "meta", coalesce=True)
    assert [each.layout for each in moved] == [torch.sparse_coo, torch.sparse_csr]
    assert all(is_moved(each) for each in moved)


def test_a_jagged_tensor_is_moved_by_torch() -> None:
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    moved = tensors_to_device({"j": jagged}, "meta")["j"]
    assert type(moved) is type(jagged)
    assert is_moved(moved)


def test_a_subclass_is_moved_by_its_own_means() -> None:
    class Tagged(torch.Tensor):  # type: ignore[name-defined, misc]
        pass

    value = torch.ones(3).as_subclass(Tagged)
    moved = tensors_to_device(value, "meta")
    assert type(moved) is Tagged
    assert is_moved(moved)


def test_what_torch_cannot_move_is_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nested tensors are a prototype
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(TransferError, match=r"data\['x'\]\[1\] cannot be moved") as caught:
        tensors_to_device({"x": [torch.ones(1), nested]}, "meta")
    assert caught.value.path == "data['x'][1]"
    assert caught.value.__cause__ is not None


def test_a_quantized_tensor_has_no_place_on_meta() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch will remove them one day
        quantized = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
    with pytest.raises(TransferError, match=r"data\[0\] cannot be moved"):
        tensors_to_device([quantized], "meta")
    value = [quantized]
    assert tensors_to_device(value, "cpu") is value


def test_a_packed_sequence_leaves_its_sizes_on_the_host() -> None:
    lengths = [torch.ones(3), torch.ones(2)]
    packed = torch.nn.utils.rnn.pack_sequence(lengths, enforce_sorted=False)
    moved = tensors_to_device(packed, "meta")
    assert type(moved) is type(packed)
    assert is_moved(moved.data)
    assert is_moved(moved.sorted_indices)
    assert is_moved(moved.unsorted_indices)
    assert moved.batch_sizes is packed.batch_sizes
    assert packed.data.device.type == "cpu"


def test_a_module_is_refused_and_stays() -> None:
    module = torch.nn.Linear(2, 2)
    with pytest.raises(
        TransferError, match=r"data\['net'\].* module \(Linear\).*in place"
    ) as caught:
        tensors_to_device({"net": module}, "meta")
    assert ".to('meta') yourself" in caught.value.fix
    assert module.weight.device.type == "cpu"
    value = {"net": module, "loss": torch.nn.MSELoss()}
    assert tensors_to_device(value, "cpu") is value
    assert tensors_to_device([torch.nn.ReLU(), torch.ones(1)], "meta")[1].device.type == "meta"


class Box:
    """An object that moves itself in the way of many libraries."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def to(self, device: Any) -> Box:
        return Box(self.tensor.to(device))


class InPlace(Box):
    def to(self, device: Any) -> None:  # type: ignore[override]
        self.tensor = self.tensor.to(device)


class Anything:
    """Its ``to`` takes anything, and it has a device."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def device(self) -> Any:
        return self.tensor.device

    def to(self, *args: Any, **kwargs: Any) -> Anything:
        return Anything(self.tensor.to(*args, **kwargs))


class Quantity:
    """Its ``to`` is about units."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def to(self, unit: str) -> Quantity:
        raise AssertionError(unit)


class ByKeyword(Box):
    def to(self, *, device: Any) -> Box:  # type: ignore[override]
        return ByKeyword(self.tensor.to(device))


@pytest.mark.parametrize("kind", [Box, InPlace, Anything, ByKeyword])
def test_an_object_with_to_moves_itself(kind: Any) -> None:
    value = kind(torch.ones(2))
    moved = tensors_to_device([value], "meta")[0]
    assert type(moved) is type(value)
    assert is_moved(moved.tensor)
    assert value.tensor.device.type == "cpu"
    assert tensors_to_device(value, "cpu") is value
    assert tensors_to_device([moved], "meta")[0] is moved


def test_a_to_that_is_not_about_devices_is_left_alone() -> None:
    value = Quantity(torch.ones(2))
    assert tensors_to_device(value, "meta") is value


class Failing(Box):
    def to(self, device: Any) -> Box:
        raise ZeroDivisionError(device)


def test_an_object_that_fails_to_move_is_named() -> None:
    with pytest.raises(TransferError, match=r"data\[1\] cannot be moved: a .*Failing"):
        tensors_to_device([0, Failing(torch.ones(2))], "meta")


def test_a_default_device_changes_nothing() -> None:
    value = [torch.ones(2), torch.ones(1).expand(5)]
    with torch.device("meta"):
        assert tensors_to_device(value, "cpu") is value
        moved = tensors_to_device(value, "meta", coalesce=True)
    assert all(is_moved(each) for each in moved)


def test_in_inference_mode() -> None:
    value = [torch.ones(3) for _ in range(8)]
    with torch.inference_mode():
        moved = tensors_to_device(value, "meta", coalesce=True)
    assert all(is_moved(each) for each in moved)
    assert all(is_moved(each) for each in tensors_to_device(value, "meta", coalesce=True))


def test_arrays_of_numpy_move_on_request_only() -> None:
    array = np.ones(3, np.float32)
    value = {"a": array, "b": [array]}
    assert tensors_to_device(value, "meta") is value
    moved = tensors_to_device(value, "meta", arrays="tensors")
    assert is_moved(moved["a"])
    assert moved["a"] is moved["b"][0]
    host = tensors_to_device(value, "cpu", arrays="tensors")
    assert host["a"].tolist() == [1, 1, 1]
    with pytest.raises(TransferError, match=r"data\['a'\] cannot be moved: torch has no elements"):
        tensors_to_device({"a": np.array(["text"])}, "cpu", arrays="tensors")
    both = tensors_to_device([array, array[1:]], "cpu", arrays="tensors")
    assert both[1].data_ptr() == both[0].data_ptr() + 4
    with pytest.raises(ValueError, match="'leave' or 'tensors'"):
        tensors_to_device(value, "cpu", arrays="move")  # type: ignore[arg-type]
