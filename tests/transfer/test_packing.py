"""Many small tensors in one copy: their values, their independence, and which are left out.

The copy goes to the host here, so that its values can be read; `test_cuda_transfer.py` does the
same with a GPU.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devicecore.errors import DeviceCoreError
from devicecore.transfer import packing, pinned_ring, tensors_to_device, torch_leaves
from devicecore.transfer.memory import extents_of
from devicecore.transfer.packing import ALIGNMENT, SMALL_BYTES, move_packed, move_simple

torch = pytest.importorskip("torch")

DTYPES = ["float32", "float64", "bool", "uint8", "int64", "bfloat16", "complex64", "float16"]


def packed(tensors: list[Any], fewest: int = 1) -> dict[int, Any]:
    return move_packed(tensors, extents_of(tensors), torch.device("cpu"), fewest)


def values(number: int, dtype: str) -> Any:
    return torch.arange(number).to(getattr(torch, dtype))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(DTYPES),
            st.lists(st.integers(1, 5), max_size=3),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_values_shapes_and_types_arrive(kinds: list[tuple[str, list[int]]]) -> None:
    tensors = [values(int(torch.Size(shape).numel()), dtype).view(shape) for dtype, shape in kinds]
    moved = packed(tensors)
    assert sorted(moved) == list(range(len(tensors)))
    for position, tensor in enumerate(tensors):
        assert moved[position].dtype == tensor.dtype
        assert moved[position].shape == tensor.shape
        assert torch.equal(moved[position], tensor)
        assert moved[position].data_ptr() % ALIGNMENT == 0
        assert moved[position].is_contiguous()


def test_more_than_a_chunk_is_moved_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 1024)
    tensors = [values(index % 50 + 1, "float32") for index in range(100)]
    moved = packed(tensors)
    assert all(torch.equal(moved[index], tensors[index]) for index in range(100))
    assert len({each.untyped_storage()._cdata for each in moved.values()}) > 5


def test_results_are_tensors_of_their_own_to_autograd() -> None:
    """Views of one tensor share a count of changes, and a change would spoil another's backward."""
    moved = packed([values(16, "float32") for _ in range(4)])
    assert all(each._base is None for each in moved.values())
    weight = torch.ones(16, requires_grad=True)
    loss = (weight * moved[0]).sum()
    moved[1].add_(1)
    loss.backward()
    assert weight.grad.tolist() == list(range(16))
    assert moved[2].requires_grad_().is_leaf


def test_what_was_given_is_not_shared() -> None:
    tensors = [values(4, "float32") for _ in range(4)]
    moved = packed(tensors)
    moved[0].zero_()
    assert tensors[0].tolist() == [0, 1, 2, 3]


def odd_tensors() -> dict[str, Any]:
    """Return tensors that are not packed, by what is odd about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch will remove quantized ones one day
        quantized = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
        compressed = torch.eye(4).to_sparse_csr()  # and calls these a beta
    return {
        "large": torch.zeros(SMALL_BYTES + 1, dtype=torch.uint8),
        "strided": torch.zeros(4, 4).t(),
        "watched": torch.zeros(4, requires_grad=True),
        "empty": torch.zeros(0),
        "sparse": torch.zeros(4).to_sparse(),
        "compressed": compressed,
        "quantized": quantized,
        "parameter": torch.nn.Parameter(torch.zeros(4), requires_grad=False),
        "elsewhere": torch.zeros(4, device="meta"),
    }


def test_odd_ones_are_left_out() -> None:
    conjugated = torch.tensor([1 + 2j]).conj()
    odd = [*odd_tensors().values(), conjugated, conjugated.imag]
    last = torch.zeros(SMALL_BYTES, dtype=torch.uint8)
    assert list(packed([*odd, last])) == [len(odd)]


@given(st.lists(st.tuples(st.sampled_from(DTYPES), st.integers(1, 40)), min_size=1, max_size=30))
def test_a_simple_batch_goes_as_a_whole(kinds: list[tuple[str, int]]) -> None:
    tensors = [values(number, dtype) for dtype, number in kinds]
    moved = move_simple(tensors, torch.device("cpu"), 1)
    assert sorted(moved) == list(range(len(tensors)))
    assert all(torch.equal(moved[position], each) for position, each in enumerate(tensors))
    assert [moved[position].dtype for position in range(len(tensors))] == [
        each.dtype for each in tensors
    ]


@pytest.mark.parametrize("odd", odd_tensors())
def test_a_batch_with_an_odd_one_is_not_simple(odd: str) -> None:
    batch = [torch.zeros(16) for _ in range(4)]
    assert move_simple([*batch, odd_tensors()[odd], *batch], torch.device("cpu"), 1) == {}


@pytest.mark.parametrize("start", [0, 5, 15])
def test_a_batch_with_one_over_another_is_not_simple(start: int) -> None:
    memory = torch.arange(64.0)
    apart = [memory[index * 16 : index * 16 + 16] for index in (2, 0, 1)]
    assert len(move_simple(apart, torch.device("cpu"), 1)) == 3
    over = memory[start : start + 2]
    assert move_simple([*apart, over], torch.device("cpu"), 1) == {}
    assert move_simple([over, *apart], torch.device("cpu"), 1) == {}


def test_a_simple_batch_fits_into_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 1024)
    fits = [torch.zeros(16) for _ in range(1024 // 128)]
    assert len(move_simple(fits, torch.device("cpu"), 1)) == len(fits)
    assert move_simple([*fits, torch.zeros(16)], torch.device("cpu"), 1) == {}


def test_lazily_conjugated_ones_arrive_in_a_simple_batch() -> None:
    lazy = [torch.tensor([1 + 2j]).conj(), torch.tensor([3 + 4j]).conj().imag]
    assert lazy[0].is_conj()
    assert lazy[1].is_neg()
    moved = move_simple(lazy, torch.device("cpu"), 1)
    assert moved[0].tolist() == [1 - 2j]
    assert moved[1].tolist() == [-4]


def test_few_are_not_worth_it() -> None:
    few = [torch.zeros(4) for _ in range(3)]
    assert packed(few, fewest=4) == {}
    assert move_simple(few, torch.device("cpu"), 4) == {}


def test_in_and_out_of_inference_mode() -> None:
    tensors = [values(3, "float32") for _ in range(4)]
    with torch.inference_mode():
        assert torch.equal(packed(tensors)[1], tensors[1])
    assert torch.equal(packed(tensors)[1], tensors[1])


@pytest.mark.parametrize("coalesce", [True, False, "auto"])
def test_all_ways_give_the_same_structure(coalesce: Any) -> None:
    value = {"small": [torch.zeros(index + 1) for index in range(9)], "large": torch.zeros(99999)}
    moved = tensors_to_device(value, "meta", coalesce=coalesce)
    assert [each.shape for each in moved["small"]] == [each.shape for each in value["small"]]
    assert moved["large"].device.type == "meta"
    storages = {each.untyped_storage()._cdata for each in moved["small"]}
    assert len(storages) == (1 if coalesce is True else 9)


class FakeEvent:
    """An event of a GPU that is not there: done when it was waited for."""

    def __init__(self) -> None:
        self.is_done = False

    def query(self) -> bool:
        return self.is_done

    def synchronize(self) -> None:
        self.is_done = True


class FakeStream:
    """A stream of a GPU that is not there."""

    def record_event(self) -> FakeEvent:
        return FakeEvent()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> pinned_ring.PinnedRing:
    """A ring whose memory is not page-locked, since that takes a GPU."""
    pageable = torch.empty

    def empty(*arguments: Any, pin_memory: bool, **others: Any) -> Any:
        assert pin_memory
        return pageable(*arguments, **others)

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: FakeStream())
    return pinned_ring.PinnedRing()


def test_a_buffer_is_used_again_when_its_copy_is_done(ring: pinned_ring.PinnedRing) -> None:
    device = torch.device("cuda:0")
    seen = []
    for _ in range(10):
        with ring.lend(device) as buffer:
            seen.append(buffer.data_ptr())
    assert ring.buffers == len(set(seen)) == 3
    assert seen[:3] == seen[3:6]


def test_a_buffer_comes_back_after_an_error(ring: pinned_ring.PinnedRing) -> None:
    device = torch.device("cuda:0")
    for _ in range(10):
        with pytest.raises(ZeroDivisionError), ring.lend(device):
            raise ZeroDivisionError
    assert ring.buffers == 3


def test_threads_never_share_a_buffer(ring: pinned_ring.PinnedRing) -> None:
    device, barrier, seen = torch.device("cuda:0"), threading.Barrier(6), []

    def borrow() -> None:
        with ring.lend(device) as buffer:
            barrier.wait(60)
            seen.append(buffer.data_ptr())
            barrier.wait(60)

    threads = [threading.Thread(target=borrow) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 6


class FatalEvent(FakeEvent):
    """Like one of CUDA: where it is freed without a driver, the process ends."""

    def __init__(self) -> None:
        super().__init__()
        self.home = os.getpid()

    def __del__(self) -> None:
        if os.getpid() != self.home:
            os._exit(3)


def test_a_forked_child_starts_without_buffers(
    ring: pinned_ring.PinnedRing, in_fork: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeStream, "record_event", lambda _: FatalEvent())
    with ring.lend(torch.device("cuda:0")):
        pass

    # No collection in the child: it would finalise what other tests left, beside dead threads.
    assert in_fork(lambda: ring.buffers) == 0
    assert ring.buffers == 1


def test_tensors_without_memory_of_their_own_are_moved_one_by_one() -> None:
    """Inside of vmap a tensor says that it is plain, and has no memory to show."""

    def move(x: Any) -> Any:
        moved = tensors_to_device([x, x[:1], *(values(2, "float32") for _ in range(4))], "meta")
        assert {each.device.type for each in moved} == {"meta"}
        return moved[0]

    assert torch.func.vmap(move)(torch.ones(3, 2)).shape == (3, 2)


def test_where_a_common_copy_fails_each_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        msg = "no room for all of them"
        raise RuntimeError(msg)

    monkeypatch.setattr(torch_leaves, "move_simple", fail)
    many = [values(2, "float32") for _ in range(8)]
    moved = tensors_to_device(many, "meta", coalesce=True)
    assert {each.device.type for each in moved} == {"meta"}
    gone = torch.empty(3, device="meta")  # has no values that could go anywhere
    with pytest.raises(DeviceCoreError) as caught:
        tensors_to_device([*many, gone], "cpu")
    assert "data[8]" in str(caught.value) + str(getattr(caught.value, "__notes__", ""))


def test_a_word_that_says_nothing_about_packing_is_refused() -> None:
    with pytest.raises(ValueError, match="coalesce is True, False or 'auto', not 'atuo'"):
        tensors_to_device([1], "cpu", coalesce="atuo")  # type: ignore[arg-type]
