"""Transfer to and from a real CUDA GPU: values, streams, memory, and what waits for what."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import device_scope
from devicecore.device_factory import default_registry
from devicecore.errors import OutOfMemoryError, TransferError
from devicecore.transfer import as_tensor, tensors_to_device, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.hardware

LONG = 500_000_000  # cycles of the GPU's clock: about a quarter of a second
SMALL = 64


@pytest.fixture
def torch() -> Any:
    """torch, where it is live on a GPU."""
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], "torch")
    if not found.is_live:
        pytest.skip(f"CUDA for torch is {found.state}: {found.reason}")
    return pytest.importorskip("torch")


def small(torch: Any, number: int, seed: int = 0) -> list[Any]:
    """Return small tensors that differ from each other."""
    return [torch.full((SMALL,), float(index + seed)) for index in range(number)]


def test_values_of_every_size_and_type_arrive(torch: Any) -> None:
    names = ("float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64")
    value = {
        name: [torch.arange(size).to(getattr(torch, name)) for size in (0, 1, 7, 64, 4096, 100_000)]
        for name in names
    }
    value["shapes"] = [torch.rand(2, 3, 4), torch.tensor(5.0), torch.rand(4, 5).t()]
    for coalesce in ("auto", True, False):
        moved = tensors_to_device(value, "cuda:0", coalesce=coalesce)
        for name, tensors in value.items():
            for old, new in zip(tensors, moved[name], strict=True):
                assert new.device == torch.device("cuda:0")
                assert (new.dtype, new.shape, new.stride()) == (old.dtype, old.shape, old.stride())
                assert torch.equal(new.cpu(), old)
                assert old.device.type == "cpu"
        assert tensors_to_device(moved, "cuda:0") is moved


def test_small_ones_share_one_copy(torch: Any) -> None:
    moved = tensors_to_device(small(torch, 100), "cuda:0")
    assert len({each.untyped_storage().data_ptr() for each in moved}) == 1
    alone = tensors_to_device(small(torch, 100), "cuda:0", coalesce=False)
    assert len({each.untyped_storage().data_ptr() for each in alone}) == 100


def test_staging_memory_is_not_used_again_too_early(torch: Any) -> None:
    """Behind a long kernel all copies wait, and there are more of them than buffers."""
    torch.cuda._sleep(LONG)
    rounds = [tensors_to_device(small(torch, 200, seed), "cuda:0") for seed in range(40)]
    for seed, moved in enumerate(rounds):
        for index, tensor in enumerate(moved):
            assert tensor[0].item() == tensor[-1].item() == index + seed


def test_more_than_all_buffers_at_once(torch: Any) -> None:
    value = [torch.full((16384,), float(index)) for index in range(500)]  # 64 KiB each
    torch.cuda._sleep(LONG)
    moved = tensors_to_device(value, "cuda:0")
    assert all(bool((each == index).all()) for index, each in enumerate(moved))


def test_threads_on_streams_of_their_own(torch: Any) -> None:
    failures: list[str] = []

    def run(seed: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(30):
                moved = tensors_to_device(small(torch, 100, seed + turn), "cuda:0")
                totals = torch.stack(moved)[:, 0].cpu().tolist()
                if totals != [float(index + seed + turn) for index in range(100)]:
                    failures.append(f"{seed}, {turn}")

    threads = [threading.Thread(target=run, args=(1000 * index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_page_locked_memory_is_copied_without_waiting(torch: Any) -> None:
    pinned = torch.rand(1 << 22).pin_memory()
    tensors_to_device(pinned, "cuda:0")  # what is done only once
    torch.cuda.synchronize()
    torch.cuda._sleep(LONG)
    moved = tensors_to_device({"x": pinned}, "cuda:0")["x"]
    assert not torch.cuda.current_stream().query()
    assert torch.equal(moved.cpu(), pinned)


def test_blocking_means_done(torch: Any) -> None:
    value = [*small(torch, 10), torch.rand(1 << 20).pin_memory()]
    torch.cuda._sleep(LONG)
    tensors_to_device(value, "cuda:0", non_blocking=False)
    assert torch.cuda.current_stream().query()


def test_to_the_host_is_done_when_it_returns(torch: Any) -> None:
    x = torch.zeros(1 << 20, device="cuda:0")
    torch.cuda.synchronize()
    torch.cuda._sleep(LONG)
    x.add_(3)
    assert bool((tensors_to_device([x], "cpu")[0] == 3).all())


def test_a_handle_waits_for_what_comes_to_the_host(torch: Any) -> None:
    x = torch.zeros(1 << 20, device="cuda:0")
    tensors_to_device([x], "cpu", wait=False).wait()  # locks the memory once
    torch.cuda.synchronize()
    torch.cuda._sleep(LONG)
    x.add_(3)
    handle = tensors_to_device({"x": x}, "cpu", wait=False)
    assert not handle.done
    assert bool((handle.wait()["x"] == 3).all())
    assert handle.done


def test_a_handle_of_a_copy_to_the_gpu(torch: Any) -> None:
    torch.cuda._sleep(LONG)
    handle = tensors_to_device(small(torch, 10), "cuda:0", wait=False)
    assert not handle.done
    moved = handle.wait()
    assert torch.cuda.current_stream().query()
    assert moved[3][0].item() == 3


def test_views_and_expanded_tensors_stay_what_they_are(torch: Any) -> None:
    base = torch.arange(12.0)
    moved = tensors_to_device(
        {
            "a": base,
            "b": base[4:8],
            "c": base.view(3, 4).t(),
            "e": torch.ones(1).expand(1000, 1000),
        },
        "cuda:0",
    )
    assert torch.equal(moved["b"].cpu(), base[4:8])
    assert torch.equal(moved["c"].cpu(), base.view(3, 4).t())
    moved["a"].add_(1)
    assert moved["b"].tolist() == [5, 6, 7, 8]
    assert moved["e"].untyped_storage().nbytes() == 4
    assert moved["e"].sum().item() == 1_000_000


def test_they_stay_views_on_the_way_back_too(torch: Any) -> None:
    base = torch.arange(8.0, device="cuda:0")
    moved = tensors_to_device([base, base[2:4]], "cpu")
    moved[0].add_(1)
    assert moved[1].tolist() == [3, 4]
    assert base.tolist() == list(range(8))


def test_changes_in_place_do_not_spoil_anothers_gradient(torch: Any) -> None:
    moved = tensors_to_device(small(torch, 8), "cuda:0")
    weight = torch.ones(SMALL, device="cuda:0", requires_grad=True)
    loss = (weight * moved[2]).sum()
    moved[3].add_(1)
    loss.backward()
    assert weight.grad[0].item() == 2


def test_gradients_flow_through_a_move(torch: Any) -> None:
    weight = torch.ones(4, requires_grad=True)
    moved = tensors_to_device([weight, *small(torch, 5)], "cuda:0")[0]
    moved.sum().backward()
    assert weight.grad.tolist() == [1, 1, 1, 1]


def test_a_module_that_is_there_already_is_fine(torch: Any) -> None:
    module = torch.nn.Linear(2, 2)
    with pytest.raises(TransferError, match="in place"):
        tensors_to_device([module], "cuda:0")
    value = [module.to("cuda:0")]
    assert tensors_to_device(value, "cuda:0") is value


def test_words_for_the_current_gpu(torch: Any) -> None:
    x = torch.ones(2)
    current = torch.device("cuda", torch.cuda.current_device())
    for word in ("cuda", "gpu", torch.device("cuda")):
        assert tensors_to_device(x, word).device == current
    there = x.to(current)
    assert tensors_to_device(there, "cuda") is there
    value = small(torch, 8)
    with torch.device("cuda:0"):
        moved = tensors_to_device(value, "cuda:0")
    assert all(each.device == torch.device("cuda:0") for each in moved)


def test_the_second_gpu_and_the_current_one(torch: Any) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU only")
    second = torch.device("cuda:1")
    moved = tensors_to_device([*small(torch, 10), torch.rand(1 << 20)], "cuda:1")
    assert all(each.device == second for each in moved)
    assert moved[7][0].item() == 7
    across = tensors_to_device(moved, "cuda:0")
    assert all(each.device == torch.device("cuda:0") for each in across)
    assert across[7][0].item() == 7
    for around in (torch.cuda.device(1), device_scope("cuda:1")):
        with around:
            for word in ("cuda", "gpu", torch.device("cuda")):
                assert tensors_to_device(torch.ones(1), word).device == second
                with device_scope(word) as device:
                    assert device.torch_device == "cuda:1"
            assert tensors_to_device(torch.ones(1), "gpu:0").device == torch.device("cuda:0")
    assert torch.cuda.current_device() == 0


class Batch:
    """Moves in place what is in it."""

    def __init__(self, torch: Any) -> None:
        self.fields = {"ids": torch.ones(2), "mask": torch.zeros(2)}

    def to(self, device: Any) -> Batch:
        for name, value in self.fields.items():
            self.fields[name] = value.to(device)
        return self


def test_what_moves_itself_leaves_its_origin_on_the_host(torch: Any) -> None:
    batch = Batch(torch)
    moved = tensors_to_device([batch], "cuda:0")[0]
    assert [each.device.type for each in moved.fields.values()] == ["cuda", "cuda"]
    assert [each.device.type for each in batch.fields.values()] == ["cpu", "cpu"]
    assert tensors_to_device([moved], "cuda:0")[0] is moved
    assert tensors_to_device(moved, "cpu").fields["ids"].device.type == "cpu"
    assert moved.fields["ids"].device.type == "cuda"


def test_too_much_is_an_error_that_names_the_place(torch: Any) -> None:
    share = torch.cuda.mem_get_info(0)[1] // 50
    # The large one is never written, so it costs nothing.
    batch = {"images": [*small(torch, 5), torch.empty(share, dtype=torch.uint8)]}
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.01, 0)
    try:
        with pytest.raises(OutOfMemoryError) as caught:
            tensors_to_device(batch, "cuda:0")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, 0)
    assert "data['images'][5]" in caught.value.__notes__[0]
    assert tensors_to_device(small(torch, 5), "cuda:0")[2][0].item() == 2


def test_arrays_go_there_and_back(torch: Any) -> None:
    np = pytest.importorskip("numpy")
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[::-1]
    tensor = as_tensor(array, "cuda:0")
    assert tensor.device == torch.device("cuda:0")
    assert (to_numpy(tensor) == array).all()
    moved = tensors_to_device({"a": array}, "cuda:0", arrays="tensors")
    assert torch.equal(moved["a"], tensor)
    assert to_numpy(torch.ones(3, device="cuda:0", requires_grad=True)).tolist() == [1, 1, 1]


def test_a_packed_sequence_runs_on_the_gpu(torch: Any) -> None:
    lengths = [torch.rand(5, 3), torch.rand(2, 3)]
    packed = torch.nn.utils.rnn.pack_sequence(lengths, enforce_sorted=False)
    network = torch.nn.GRU(3, 4)
    expected, _ = network(packed)
    moved, _ = network.to("cuda:0")(tensors_to_device(packed, "cuda:0"))
    torch.testing.assert_close(moved.data.cpu(), expected.data, rtol=1e-3, atol=1e-3)


def test_inside_inference_mode_and_outside_again(torch: Any) -> None:
    with torch.inference_mode():
        moved = tensors_to_device(small(torch, 8), "cuda:0")
        assert moved[5][0].item() == 5
    assert tensors_to_device(small(torch, 8), "cuda:0")[5][0].item() == 5


def test_a_forked_child_survives_what_its_parent_has_moved(
    torch: Any, in_fork: Callable[..., Any]
) -> None:
    """Events and page-locked memory of the parent must not be freed there."""
    moved = tensors_to_device(small(torch, 100), "cuda:0")
    assert in_fork(lambda: [gc.collect() >= 0, tensors_to_device([1], "cpu")]) == [True, [1]]
    assert tensors_to_device(moved, "cpu")[7][0].item() == 7
