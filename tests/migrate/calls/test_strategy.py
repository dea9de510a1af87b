"""Strategies: other functions in the place of one, and a program's own functions on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from devicecore.errors import RefusedCallError, TransferError  # noqa: E402 - after torch
from devicecore.kernels import Kernel  # noqa: E402
from devicecore.migrate import (  # noqa: E402
    EnsureTensor,
    KeepOnDevice,
    MigrationStrategy,
    MoveInputStrategy,
    SwapArgs,
)
from devicecore.migrate.calls import strategy  # noqa: E402
from devicecore.migrate.calls.arrays import find_arrays  # noqa: E402
from devicecore.migrate.calls.strategy import InputsNotMovedError  # noqa: E402
from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402
from devicecore.scope import current_device  # noqa: E402
from tests.migrate.sites import FakeGpu, site  # noqa: E402

OPTIONS = Options()


def no_original(*_: Any, **__: Any) -> Any:
    raise AssertionError


def test_a_backend_is_given_what_was_prepared_and_runs_in_a_scope() -> None:
    seen: list[Any] = []

    def backend(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs, current_device()))
        return args[0] - args[1] * kwargs["by"]

    own = MigrationStrategy(
        input_processors=[EnsureTensor(), EnsureTensor()],
        arg_mapper=SwapArgs(),
        backend=backend,
        named_processors={"by": EnsureTensor()},
    )
    args, kwargs = (np.arange(3), [1, 1, 1]), {"by": np.array(2)}
    found = own.compute(host_cpu(), OPTIONS, no_original, args, kwargs)
    assert type(found) is np.ndarray
    assert found.tolist() == [1, -1, -3]
    (given, named, device) = seen[0]
    assert all(isinstance(each, torch.Tensor) for each in (*given, named["by"]))
    assert device is host_cpu()
    assert args[0].tolist() == [0, 1, 2]
    assert not own.runs_original


def test_a_backend_may_be_a_kernel_or_the_name_of_an_operation() -> None:
    kernel = Kernel("made.twice", lambda _, x: 2 * x, device_type="CPU")
    assert MigrationStrategy(kernel).compute(host_cpu(), OPTIONS, no_original, (3,), {}) == 6
    with pytest.raises(RefusedCallError, match=r"made\.unknown"):
        MigrationStrategy("made.unknown").compute(host_cpu(), OPTIONS, no_original, (3,), {})


def test_results_may_stay_on_the_device() -> None:
    own = MigrationStrategy(torch.neg, [EnsureTensor()], output_processor=KeepOnDevice())
    found = own.compute(host_cpu(), OPTIONS, no_original, (np.ones(2),), {})
    assert isinstance(found, torch.Tensor)


def test_many_calls_leave_no_kernels_behind() -> None:
    own, device = MigrationStrategy(abs), FakeGpu()
    for _ in range(100):
        own.compute(device, OPTIONS, no_original, (3,), {})
    assert len(device._choices) <= 1


# --- a program's own functions --------------------------------------------------------------------


class MetaGpu(FakeGpu):
    """A fake: its tensors have a place, and no values."""

    def __init__(self) -> None:
        super().__init__()
        self.torch_device = "meta"


@pytest.fixture
def meta(monkeypatch: pytest.MonkeyPatch) -> MetaGpu:
    """Return a fake GPU whose memory torch can tell from the host's."""
    monkeypatch.setattr(strategy, "tensors_to_device", _moved)
    monkeypatch.setattr(strategy, "device_scope", lambda _: torch.device("meta"))
    return MetaGpu()


def _moved(data: Any, device: Any) -> Any:
    where = getattr(device, "torch_device", device)

    def change(tensor: Any) -> Any:
        is_there = tensor.device.type == where
        return tensor if is_there else torch.empty_like(tensor, device=where)

    return _mapped(data, change, {})


def _mapped(data: Any, change: Any, done: dict[int, Any]) -> Any:
    """Do as `tensors_to_device` does, which keeps references to one tensor those to one."""
    if isinstance(data, torch.nn.Module):
        path = "data"
        raise TransferError(path, "it is a module")
    if isinstance(data, torch.Tensor):
        return done.setdefault(id(data), change(data))
    if isinstance(data, dict):
        return {key: _mapped(each, change, done) for key, each in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_mapped(each, change, done) for each in data)
    return data


def run(device: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
    return MoveInputStrategy().compute(device, OPTIONS, original, args, kwargs)


def devices(value: Any) -> list[str]:
    return [each.device.type for each in find_arrays(value)]


def test_tensors_go_to_the_device_and_those_of_the_result_come_back(meta: MetaGpu) -> None:
    seen: list[Any] = []

    def original(x: Any, pair: Any, *, mask: Any) -> Any:
        seen.append(devices([x, pair, mask]))
        return {"sum": x + pair[0], "all": [x, 3]}

    one = torch.ones(2)
    found = run(meta, original, one, (one, "text"), mask=one)
    assert seen == [["meta"]]  # one tensor, as before
    assert devices(found) == ["cpu", "cpu"]
    assert found["all"][1] == 3
    assert one.tolist() == [1, 1]


def test_tensors_from_several_devices_have_no_home(meta: MetaGpu) -> None:
    found = run(meta, lambda x, y: x + y, torch.ones(2), torch.ones(2, device="meta"))
    assert found.device.type == "meta"


def test_new_tensors_go_where_new_ones_are_made(meta: MetaGpu) -> None:
    assert run(meta, torch.zeros, 3).device.type == "cpu"
    with torch.device("meta"):
        assert run(meta, torch.zeros, 3).device.type == "meta"


def test_what_is_no_tensor_is_the_callers_own(meta: MetaGpu) -> None:
    class Owner:
        def __init__(self) -> None:
            self.tensor = torch.ones(2)
            self.count = 0

        def method(self, array: Any, words: Any) -> Any:
            self.count += 1
            words.append("seen")
            array += 1
            return self

    owner, array, words = Owner(), np.zeros(2), ["a"]
    assert run(meta, Owner.method, owner, array, words) is owner
    assert (owner.count, words, array.tolist()) == (1, ["a", "seen"], [1, 1])
    assert owner.tensor.device.type == "cpu"


def test_modules_stay_as_they_are(meta: MetaGpu) -> None:
    layer = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError):  # as with any program whose model is elsewhere
        run(meta, torch.nn.Linear.forward, layer, torch.ones(2))
    assert layer.weight.device.type == "cpu"


def test_what_cannot_be_moved_is_refused_before_the_function_runs(meta: MetaGpu) -> None:
    with pytest.raises(InputsNotMovedError, match="it is a module"):
        run(meta, no_original, [torch.ones(2), torch.nn.Identity()])


def test_the_function_then_runs_on_the_host(meta: MetaGpu) -> None:
    one = site(lambda original, *args: run(meta, original, *args), runs_original=True, device=meta)
    given = [torch.ones(2), torch.nn.Identity()]
    assert one.call(lambda several: several, (given,), {}) is given
    (reason,) = one.tally.row().reasons
    assert "it is a module" in reason


def test_what_is_written_into_a_moved_tensor_is_in_the_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A fake GPU whose memory is another part of the host's, so that it has values.
    monkeypatch.setattr(strategy, "_has_others", lambda value, _: bool(devices(value)))
    monkeypatch.setattr(
        strategy, "tensors_to_device", lambda data, _: _mapped(data, torch.clone, {})
    )
    one, other, fixed = torch.zeros(2), torch.zeros(2), torch.zeros(2)

    def original(x: Any, several: Any, y: Any) -> float:
        x.add_(1)
        several[0][1] = 5
        return float(y.sum())

    assert run(FakeGpu(), original, one, [other], fixed) == 0
    assert (one.tolist(), other.tolist(), fixed._version) == ([1, 1], [0, 5], 0)
