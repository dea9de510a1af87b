"""`RecordedTensor`: the tensor that torch would have made of the array."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from devicecore.migrate.recording.buffer import Buffer  # noqa: E402
from devicecore.migrate.recording.lazy_array import LazyArray  # noqa: E402 - after torch
from devicecore.migrate.recording.nodes import compute_on_host  # noqa: E402
from devicecore.migrate.recording.recorded_tensor import RecordedTensor, from_array, from_copy  # noqa: E402
from devicecore.migrate.recording.recording import Recording  # noqa: E402
from devicecore.migrate.recording.snapshots import copy_array  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = np.random.default_rng(0).integers(0, 256, (4, 5, 3), np.uint8)
MEAN = torch.tensor([0.4, 0.5, 0.6])
PLANES = MEAN.view(-1, 1, 1)


def recorded(image: Any = IMAGE) -> RecordedTensor:
    found = from_array(LazyArray(Buffer(copy_array(image), Recording(compute_on_host, copy_array))))
    assert found is not None
    return found


def same(found: Any, expected: Any) -> None:
    assert isinstance(found, torch.Tensor)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(copy.deepcopy(found), expected, rtol=0, atol=0, equal_nan=True)


RECORDED = {
    "permute": lambda x: x.permute(2, 0, 1),
    "permute, a tuple": lambda x: x.permute((1, -1, 0)),
    "contiguous": lambda x: x.permute(2, 0, 1).contiguous(),
    "float": lambda x: x.float(),
    "double": lambda x: x.to(torch.float64),
    "type": lambda x: x.type(torch.float32).float(),
    "clone": lambda x: x.clone(),
    "scaled": lambda x: x.permute(2, 0, 1).float() / 255,
    "bytes divided": lambda x: torch.div(x, 255),
    "by a fraction": lambda x: x.true_divide(3.7),
    "arithmetic": lambda x: (x.float() * 2.5 + 1).sub(0.25),
    "planes": lambda x: (x.permute(2, 0, 1).contiguous().float().div(255) - PLANES) / PLANES,
    "a tiny number": lambda x: x.float() * 1e-60,
    "a whole number": lambda x: x.float() * (2**53 - 1) + 10**15,
    "last axis": lambda x: x.double().mul(MEAN.double()),
    "in place": lambda x: x.float().permute(2, 0, 1).contiguous().sub_(PLANES).div_(PLANES),
    "numpy and back": lambda x: torch.from_numpy(x.numpy() / np.float32(255)),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_stays_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Callable[[Any], Any] = RECORDED[name]
    expected = function(torch.from_numpy(IMAGE.copy()))
    make = torch.from_numpy
    ours = {LazyArray: from_array, np.ndarray: make}
    monkeypatch.setattr(torch, "from_numpy", lambda array: ours[type(array)](array))
    found = function(recorded())
    assert type(found) is RecordedTensor
    assert not found.array.is_on_host
    same(found, expected)


ON_HOST = {
    "a view": lambda x: x[1:, ::2],
    "sum": lambda x: x.sum(),
    "flip": lambda x: torch.flip(x, [0]),
    "stack": lambda x: torch.stack([x, x]),
    "bytes": lambda x: x + 1,
    "bytes in place": lambda x: x.add_(7),
    "wider": lambda x: x.float() - torch.zeros(2, 1, 1, 1),
    "another type": lambda x: x.float().mul(MEAN.double()),
    "alpha": lambda x: torch.add(x.float(), 1, alpha=3),
    "to int": lambda x: x.to(torch.int64),
    "to a device": lambda x: x.to("cpu", torch.float32),
    "order": lambda x: x[None].contiguous(memory_format=torch.channels_last),
    "clone of a view": lambda x: x.permute(2, 0, 1).clone(),
    "by zero": lambda x: x.float() / 0,
    "too large": lambda x: x.float() * 1e300,
    "too large a sum": lambda x: x.float() + 1e39,
    "too large in place": lambda x: x.float().add_(-1e300),
    "bytes by too large": lambda x: x / 1e300,
    "infinite": lambda x: x.double() + float("inf"),
    "no number": lambda x: x.float() * float("nan"),
    "whole numbers that are rounded twice": lambda x: x.float() * (2**60 + 2**36 + 1),
    "requires_grad": lambda x: (x.float().requires_grad_() * 2).detach(),
    "out": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "named": lambda x: torch.nn.functional.interpolate(x.permute(2, 0, 1)[None].float(), (2, 2)),
}


@pytest.mark.parametrize("name", ON_HOST)
@pytest.mark.filterwarnings("error")
def test_what_torch_does(name: str) -> None:
    expected = ON_HOST[name](torch.from_numpy(IMAGE.copy()))
    same(ON_HOST[name](recorded()), expected)


@pytest.mark.parametrize("name", ["add", "mul", "sub_", "div_"])
def test_whole_numbers_that_torch_does_not_take(name: str) -> None:
    for each in (torch.from_numpy(IMAGE.copy()), recorded()):
        with pytest.raises(OverflowError):
            getattr(each.double(), name)(10**30)


def test_what_asks_for_no_values() -> None:
    found = recorded()
    expected = torch.from_numpy(IMAGE)
    for name in ("shape", "dtype", "device", "ndim", "requires_grad", "layout", "nbytes"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("size", "dim", "numel", "stride", "is_contiguous", "is_floating_point"):
        assert getattr(found, name)() == getattr(expected, name)()
    assert len(found) == len(expected)
    assert isinstance(found, torch.ByteTensor)
    assert not found.array.is_on_host


def test_memory_is_the_arrays() -> None:
    found: Any = recorded()
    array = found.array.values
    array[0, 0] = 7
    assert found[0, 0].tolist() == [7, 7, 7]
    found += 1
    assert array[0, 0].tolist() == [8, 8, 8]
    assert found.data_ptr() == array.__array_interface__["data"][0]
    assert np.shares_memory(np.asarray(found), array)


def test_in_place_is_the_programs_own_tensor() -> None:
    found: Any = recorded().float()
    array = found.array
    assert found.mul_(2) is found
    assert not array.is_on_host
    np.testing.assert_array_equal(array.values, IMAGE * np.float32(2))
    assert found.neg_() is found
    np.testing.assert_array_equal(array.values, IMAGE * np.float32(-2))


def test_copies_are_torchs_own() -> None:
    for each in (copy.deepcopy(recorded()), pickle.loads(pickle.dumps(recorded()))):
        assert type(each) is torch.Tensor
        same(each, torch.from_numpy(IMAGE))
    assert repr(recorded()) == repr(torch.from_numpy(IMAGE))


def test_arrays_that_torch_does_not_take() -> None:
    array = LazyArray(Buffer(copy_array(IMAGE), Recording(compute_on_host, copy_array)))
    with pytest.raises(ValueError, match="negative"):
        from_array(array[::-1])
    assert from_array(IMAGE) is None
    assert array.values is not None
    assert from_array(array) is None  # its values are on the host: it is an ordinary one


VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x,
    "some": lambda x: x[::2, 1:],
    "channels": lambda x: x[..., :2],
    "channels first": lambda x: x.transpose(2, 0, 1),
    "transposed": lambda x: x.T,
    "some columns first": lambda x: x.transpose(1, 0, 2)[1:, ::2],
    "a plane": lambda x: x[..., 0],
    "some planes": lambda x: x.transpose(2, 0, 1)[1:],
}


@pytest.mark.parametrize("view", VIEWS)
def test_copies_of_arrays_have_the_strides_of_torchs(view: str) -> None:
    array = LazyArray(Buffer(copy_array(IMAGE), Recording(compute_on_host, copy_array)))
    found = from_copy(VIEWS[view](array))
    assert found is not None
    same(found, torch.tensor(VIEWS[view](IMAGE)))
    found.add_(1)
    assert (array.values == IMAGE).all()


@pytest.mark.parametrize("place", [np.s_[::-1], np.s_[..., ::-1], np.s_[0::-1]])
def test_copies_of_arrays_that_torch_does_not_take(place: Any) -> None:
    array = LazyArray(Buffer(copy_array(IMAGE), Recording(compute_on_host, copy_array)))
    with pytest.raises(ValueError, match="negative"):
        from_copy(array[place])
