"""torch: one context for each thread, whatever else is on its stack of modes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, device_scope
from devicecore.errors import ScopeError
from devicecore.frameworks.base.adapter import Adapter
from devicecore.scope.adapters import adapters, apply, placement
from devicecore.scope.scope_stack import Saves, put_back

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

torch: Any = pytest.importorskip("torch", reason="torch is not installed here")

META = device_scope("meta")
HOST = device_scope("cpu")
OTHER = device_scope(Device("/device:OTHER:0", torch_device="cpu:0"))


def stack() -> list[Any]:
    return list(torch.overrides._get_current_function_mode_stack())


@pytest.fixture(autouse=True)
def _clean() -> Any:
    assert stack() == []
    yield
    assert stack() == []
    assert str(torch.get_default_device()) == "cpu"
    assert getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is None


def test_one_context_at_any_depth_and_none_where_none_is_needed() -> None:
    with HOST:
        assert stack() == []
        with META, OTHER, META:
            (context,) = stack()
            assert type(context) is torch.utils._device.DeviceContext
            assert str(context.device) == "meta"
        with OTHER:
            assert stack() == [context]


def test_inside_of_torch_s_own_context() -> None:
    with torch.device("meta"):
        (context,) = stack()
        with HOST:
            assert stack() == [context]
            assert torch.empty(1).device.type == "cpu"
        assert torch.empty(1).device.type == "meta"


def test_around_torch_s_own_context() -> None:
    with META, torch.device("cpu"):
        assert torch.empty(1).device.type == "cpu"
        with META:
            assert torch.empty(1).device.type == "meta"
        assert torch.empty(1).device.type == "cpu"


def test_a_default_set_before() -> None:
    torch.set_default_device("meta")
    try:
        with HOST:
            assert torch.empty(1).device.type == "cpu"
        assert torch.empty(1).device.type == "meta"
        with OTHER:
            torch.set_default_device("cpu")
            with META:
                pass
            assert str(torch.get_default_device()) == "cpu"
        assert torch.empty(1).device.type == "meta"
        with HOST:
            torch.set_default_device(None)
        assert torch.empty(1).device.type == "meta"
    finally:
        torch.set_default_device(None)


def test_a_default_set_twice_inside_of_two_scopes() -> None:
    with HOST:
        torch.set_default_device("meta")
        with OTHER:
            torch.set_default_device("cpu")
            torch.set_default_device("meta")
        assert torch.empty(1).device.type == "meta"
        torch.set_default_device("cpu:0")


def test_scopes_that_end_out_of_order_around_a_default() -> None:
    outer, inner = device_scope("meta"), device_scope("cpu:0")
    outer.__enter__()
    torch.set_default_device("cpu:0")
    inner.__enter__()
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)


def test_a_mode_of_somebody_else_stays() -> None:
    calls = []

    class Watch(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(func)
            return func(*args, **(kwargs or {}))

    scope = device_scope("meta")
    with Watch():
        with scope:
            assert torch.empty(1).device.type == "meta"
        assert len(stack()) == 1
    scope.__enter__()
    watch = Watch()
    watch.__enter__()
    scope.__exit__(None, None, None)
    assert stack() == [watch]
    watch.__exit__(None, None, None)
    assert calls


class Refusing(Adapter):
    """A fake framework that takes every device and then refuses it."""

    title = "nothing"
    frameworks = frozenset({"nothing"})

    def place_of(self, device: Device) -> Any:
        return device

    def save(self, place: Any) -> Any:
        raise ScopeError(place)

    def set(self, place: Any, saved: Any) -> None:
        pytest.fail("set")

    def leave(self, saved: Any) -> None:
        pytest.fail("left")

    def join(self, upper: Any, lower: Any) -> Any:
        pytest.fail("joined")


def test_a_framework_that_refuses_leaves_the_others_as_they_were() -> None:
    device = Device("/device:OTHER:1", torch_device="meta")
    (ours,) = [each for each in adapters() if each.title == "torch"]
    saves: Saves = []
    with pytest.raises(ScopeError):
        apply(placement(device, None, (ours, Refusing())), saves)
    assert len(stack()) == 1
    put_back(saves)
    assert stack() == []


def ending_with(last: Callable[[], None]) -> list[Callable[[], object]]:
    """Return a decorated function of each kind that calls *last* at its very end."""

    async def coroutine() -> None:
        await asyncio.sleep(0)
        last()

    def generator() -> Iterator[int]:
        yield 1
        last()

    async def asynchronous() -> AsyncIterator[int]:
        yield 1
        last()

    async def drained() -> list[int]:
        return [each async for each in META(asynchronous)()]

    return [
        META(last),
        lambda: asyncio.run(META(coroutine)()),
        lambda: list(META(generator)()),
        lambda: asyncio.run(drained()),
    ]


@pytest.mark.parametrize("fails", [False, True], ids=["returns", "fails"])
@pytest.mark.parametrize("kind", range(4), ids=["function", "coroutine", "generator", "async"])
def test_a_framework_that_does_not_go_back_is_told(
    kind: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an error of its own, or as a note of the one that the function ends with."""
    (ours,) = [each for each in adapters() if each.title == "torch"]
    leave = type(ours).leave

    def broken(self: Any, saved: Any) -> None:
        leave(self, saved)
        msg = "the framework is broken"
        raise RuntimeError(msg)

    def last() -> None:
        monkeypatch.setattr(type(ours), "leave", broken)
        if fails:
            raise KeyError

    with pytest.raises(KeyError if fails else RuntimeError) as error:
        ending_with(last)[kind]()
    said = "".join(error.value.__notes__) if fails else str(error.value)
    assert "the framework is broken" in said


def test_compiled_code_is_whole_and_follows() -> None:
    def make(x: Any) -> Any:
        return torch.zeros(2) + x

    torch.compiler.reset()
    compiled = torch.compile(make, backend="eager", fullgraph=True)
    with META:
        assert compiled(torch.ones(2)).device.type == "meta"
    assert compiled(torch.ones(2)).device.type == "cpu"
    with META, HOST:
        assert compiled(torch.ones(2)).device.type == "cpu"


def test_a_loader_of_data_is_iterated_over_on_the_host() -> None:
    """The documentation says so: it fails as it does in torch's own context."""
    loader = torch.utils.data.DataLoader([1.0, 2.0], shuffle=True)
    for context in (torch.device("meta"), META):
        with context, pytest.raises(RuntimeError, match="meta tensors"):
            next(iter(loader))
    seen = []
    with META, HOST:
        for batch in loader:
            with META:
                seen.append((batch.device.type, torch.empty(1).device.type))
    assert seen == [("cpu", "meta")] * 2


def test_what_torch_itself_leaves_where_it_is() -> None:
    """These ignore torch's own context too; the documentation names them."""
    with META:
        assert torch.as_tensor([1.0]).device.type == "meta"
        assert torch.nn.Linear(2, 2).weight.device.type == "meta"
        assert torch.Tensor([1.0]).device.type == "cpu"
        assert torch.zeros_like(torch.zeros(1, device="cpu")).device.type == "cpu"
