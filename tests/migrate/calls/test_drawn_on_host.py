"""Random numbers of a program's own function: those of the host, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from devicecore.migrate.calls.random_state import draw_on_host  # noqa: E402 - after torch

if TYPE_CHECKING:
    from collections.abc import Callable

# A device of torch's that every machine has, and whose tensors have no values.
AWAY = "meta"

DRAWS = {
    "rand": lambda: torch.rand(2, 3),
    "randn": lambda: torch.randn((4,), dtype=torch.float64),
    "randint": lambda: torch.randint(0, 9, (2,)),
    "randperm": lambda: torch.randperm(7),
    "normal": lambda: torch.normal(0.5, 2.0, (3,)),
    "rand by name": lambda: torch.rand(size=(2, 3), layout=torch.strided),
    "randn by name": lambda: torch.randn(size=(4,), dtype=torch.float64, pin_memory=False),
    "randint by name": lambda: torch.randint(low=2, high=9, size=(2,)),
    "randint to": lambda: torch.randint(high=9, size=(2,)),
    "randperm by name": lambda: torch.randperm(n=7),
    "normal by name": lambda: torch.normal(mean=0.5, std=2.0, size=(3,)),
    "normal of a size": lambda: torch.normal(0.5, 2.0, size=(3,)),
    "of numbers in tensors": lambda: torch.rand(torch.tensor(3, device="cpu")),
    "gradient": lambda: torch.rand(3, requires_grad=True),
    "generator": lambda: torch.rand(3, generator=torch.Generator().manual_seed(3), device="cpu"),
    "device": lambda: torch.rand(3, device="cpu"),
    "tensors": lambda: torch.normal(torch.zeros(3, device="cpu"), torch.ones(3, device="cpu")),
    "mean by name": lambda: torch.normal(mean=torch.zeros(3, device="cpu"), std=2.0),
    "std by name": lambda: torch.normal(0.5, std=torch.ones(3, device="cpu")),
    "both by name": lambda: torch.normal(
        mean=torch.zeros(3, device="cpu"), std=torch.ones(3, device="cpu")
    ),
    "no std": lambda: torch.normal(torch.zeros(3, device="cpu")),
    "none": lambda: torch.zeros(3),
}
# What says itself where it is, or is made of what is there.
ON_HOST = {
    *("generator", "device", "tensors"),
    *("mean by name", "std by name", "both by name", "no std"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_generator_of_the_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw: Callable[[], Any] = DRAWS[name]
    torch.manual_seed(5)
    expected, state = draw(), torch.get_rng_state()
    torch.manual_seed(5)
    drawn: list[Any] = []
    move = torch.Tensor.to

    def moved(tensor: Any, device: str) -> Any:
        drawn.append(tensor)
        return move(tensor, device)

    monkeypatch.setattr(torch.Tensor, "to", moved)
    mode = draw_on_host(AWAY)
    with torch.device(AWAY), mode:
        found = draw()
    assert torch.equal(torch.get_rng_state(), state)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert (found.requires_grad, found.is_leaf) == (expected.requires_grad, expected.is_leaf)
    if name in ON_HOST:
        assert found.device.type == "cpu"
        assert torch.equal(found, expected)
    else:
        assert found.device.type == AWAY
        assert all(torch.equal(each, expected) for each in drawn)
        assert bool(drawn) == (name != "none")


def test_where_a_program_draws_on_a_device_by_itself() -> None:
    with torch.device(AWAY):  # as `torch.set_default_device` does
        mode = draw_on_host(AWAY)
        state = torch.get_rng_state()
        with mode:
            torch.rand(3)
        assert torch.equal(torch.get_rng_state(), state)
    for nothing in (None, "cpu"):
        with draw_on_host(nothing):
            assert torch.rand(3).device.type == "cpu"
