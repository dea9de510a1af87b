"""Objects that are called with tensors: what they do on a device, and what becomes of them.

The classes here stand in for those of torchvision and torchaudio, whose own tests are in
`test_strategies_transforms` and need them installed. The device is the host, but everything that
goes there or comes back is made anew and written down.
"""

from __future__ import annotations

import copy
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from devicecore.errors import RefusedCallError  # noqa: E402 - after torch
from devicecore.migrate import PipelineMigrator, default_strategies  # noqa: E402
from devicecore.migrate.strategies import module_strategy  # noqa: E402
from devicecore.migrate.strategies.module_strategy import Classes, ModuleStrategy  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

Module: Any = torch.nn.Module
HERE = __name__


class Flip(Module):  # type: ignore[misc]
    """Stands in for a random transform."""

    def __init__(self, chance: float = 0.5) -> None:
        super().__init__()
        self.chance = chance
        self.inplace = False

    def forward(self, image: Any) -> Any:
        return image.flip(-1) if torch.rand(1) < self.chance else image


class Window(Module):  # type: ignore[misc]
    """Stands in for what has something of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.arange(4.0))
        self.scale = torch.tensor(2.0)

    def forward(self, wave: Any, *, add: Any = 0) -> Any:
        if self.scale == 0:
            torch.rand(1)
            msg = "as a GPU may"
            raise RuntimeError(msg)
        return wave * self.window * self.scale + add


class Both(Module):  # type: ignore[misc]
    """Stands in for what calls others that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Window()
        self.second = Flip()

    def forward(self, wave: Any) -> Any:
        return self.second(self.first(wave))


class Convert:
    """Stands in for what makes a tensor of an image."""

    def __call__(self, image: Any) -> Any:
        return torch.tensor(image.pixels) if isinstance(image, Image) else image


class Image:
    pixels = (1.0, 2.0, 3.0, 4.0)


Image.__module__ = "PIL.Image"


class Compose:
    """Stands in for a list of others."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for each in self.transforms:
            value = each(value)
        return value


class Shuffled(Compose):
    """Stands in for a container that draws Python's random numbers."""

    def __call__(self, value: Any) -> Any:
        order = list(self.transforms)
        random.shuffle(order)
        for each in order:
            value = each(value)
        return value


class Derived(Flip):
    """A class of the program."""


CLASSES = Classes(
    {f"{HERE}.Flip": "exact", f"{HERE}.Window": "tolerance", f"{HERE}.Both": "close"},
    containers=frozenset({f"{HERE}.Compose", f"{HERE}.Shuffled"}),
    conversions=frozenset({f"{HERE}.Convert"}),
    refused={"iid": "its masks are drawn there"},
)
REGISTRY = default_strategies()
for _name in ("Flip.forward", "Window.forward", "Both.forward"):
    REGISTRY.register(f"{HERE}.{_name}", ModuleStrategy(f"{HERE}.{_name}", CLASSES))
for _name in ("Compose.__call__", "Shuffled.__call__"):
    REGISTRY.register(f"{HERE}.{_name}", ModuleStrategy(f"{HERE}.{_name}", CLASSES))


@pytest.fixture(autouse=True)
def moves(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what goes to the device and back, in order: a tensor, and where it goes."""
    found: list[Any] = []

    def to(tensor: Any, place: str) -> Any:
        found.append((tensor, place))
        return tensor.clone()

    monkeypatch.setattr(module_strategy, "_to", to)
    return found


def migrated(
    function: Callable[[], Any], name: str, accept: str = "close", **how: Any
) -> tuple[Any, Any]:
    """Return what a function gives by a plan, and the only row of the report."""
    plan = {f"{HERE}:{name}": {"device": "cpu", "kernel": "torch", "accept": accept}}
    with PipelineMigrator(plan, REGISTRY, **how) as migrator:
        found = function()
    [row] = migrator.report().rows
    return found, row


def refusal(value: Any, *args: Any, accept: str = "close") -> str:
    """Return why a call is left to the object itself."""
    name = type(value).__name__
    with pytest.raises(RefusedCallError) as caught:
        migrated(lambda: value(*args), name, accept, strict=True)
    return str(caught.value)


WAVE = torch.linspace(0, 1, 4)


def seeded(function: Callable[[], Any]) -> Any:
    """Return results, and the random numbers that come after them."""
    torch.manual_seed(3)
    random.seed(3)
    return function(), torch.rand(2).tolist(), random.random()


# --- random numbers -------------------------------------------------------------------------------


def many(value: Any) -> Callable[[], Any]:
    return lambda: [value(WAVE + n).tolist() for n in range(20)]


@pytest.mark.parametrize("verify", [0, 1, 3])
@pytest.mark.parametrize("name", ["Flip", "Both", "Compose", "Shuffled"])
def test_the_same_random_numbers_are_drawn(name: str, verify: int) -> None:
    members = [Flip(), Window()]
    made: Any = globals()[name](members) if name in ("Compose", "Shuffled") else globals()[name]()
    expected = seeded(many(made))
    found, row = migrated(lambda: seeded(many(made)), name, verify=verify)
    assert found == expected
    assert row.migrated == 20


@pytest.mark.parametrize("verify", [0, 1])
def test_what_fails_there_draws_and_changes_nothing(verify: int) -> None:
    made = Window()
    made.scale = torch.tensor(0.0)

    def failing() -> Any:
        with pytest.raises(RuntimeError, match="as a GPU may"):
            made(WAVE)

    expected = seeded(failing)
    found, row = migrated(lambda: seeded(failing), "Window", verify=verify)
    assert found == expected
    assert row.migrated == 0


def test_the_original_answers_for_a_device_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Compose([Flip(), Window()])
    expected = seeded(many(made))
    there: list[Any] = []

    def to(tensor: Any, place: str) -> Any:
        there.append(tensor)
        if len(there) > 2:  # what is computed cannot come back
            msg = "out of order"
            raise RuntimeError(msg)
        return tensor.clone()

    monkeypatch.setattr(module_strategy, "_to", to)
    given = WAVE.clone()
    found, row = migrated(lambda: seeded(many(made)), "Compose")
    assert found == expected
    assert row.migrated == 0
    assert given.equal(WAVE)


# --- what an object has ---------------------------------------------------------------------------


def test_its_tensors_go_there_and_the_object_stays(moves: list[Any]) -> None:
    made: Any = Both()
    before = copy.deepcopy(made.state_dict())
    kept = dict(vars(made)), dict(vars(made.first)), dict(made.first._buffers)
    found, row = migrated(lambda: made(WAVE), "Both")
    assert row.migrated == 1
    assert any(tensor is made.first.window for tensor, _ in moves)
    assert any(tensor is made.first.scale for tensor, _ in moves)
    assert kept == (vars(made), vars(made.first), made.first._buffers)
    assert all(made.state_dict()[key].equal(value) for key, value in before.items())
    assert sorted(found.tolist()) == (WAVE * torch.arange(4.0) * 2).tolist()


def test_what_the_program_changes_in_it_counts() -> None:
    made = Window()

    def changing() -> Any:
        found = [made(WAVE).tolist()]
        made.window.data.numpy()[:] = 3  # torch does not count this as a change
        found.append(made(WAVE).tolist())
        made.scale = torch.tensor(5.0)
        found.append(made(WAVE, add=torch.ones(4)).tolist())
        return found

    expected = changing()
    made.window.copy_(torch.arange(4.0))
    made.scale = torch.tensor(2.0)
    found, row = migrated(changing, "Window", "tolerance")
    assert found == expected
    assert row.migrated == 3


def test_threads_do_not_meet() -> None:
    made = Both()
    made.second.chance = 2.0
    expected = {n: made(WAVE + n).tolist() for n in range(60)}
    found: dict[int, Any] = {}

    def each(first: int) -> None:
        for n in range(first, 60, 3):
            found[n] = made(WAVE + n).tolist()

    def all_at_once() -> None:
        threads = [threading.Thread(target=each, args=(n,)) for n in range(3)]
        [thread.start() for thread in threads]  # type: ignore[func-returns-value]
        [thread.join() for thread in threads]  # type: ignore[func-returns-value]

    _, row = migrated(all_at_once, "Both")
    assert found == expected
    assert row.migrated == 60


class Numbers:
    """Stands in for a dataset with random transforms."""

    def __init__(self) -> None:
        self.transform = Compose([Flip(), Window()])

    def __len__(self) -> int:
        return 8

    def __getitem__(self, place: int) -> Any:
        return self.transform(WAVE + place)


def test_workers_draw_the_same_random_numbers() -> None:
    def load() -> Any:
        loader = torch.utils.data.DataLoader(
            Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork"
        )
        return [batch.tolist() for batch in loader]

    expected = seeded(load)
    plan = {f"{HERE}:Compose": {"device": "cpu", "kernel": "torch", "accept": "close"}}
    with PipelineMigrator(plan, REGISTRY, strict=True):  # where it fails, so does the worker
        assert seeded(load) == expected


def test_hooks_see_the_object_itself() -> None:
    made = Flip()
    seen: list[Any] = []
    made.register_forward_hook(lambda module, args, result: seen.append((module, args[0])))
    _, row = migrated(lambda: made(WAVE), "Flip")
    assert row.migrated == 1
    assert seen[0][0] is made
    assert seen[0][1] is WAVE


# --- what comes back ------------------------------------------------------------------------------


def test_what_was_given_comes_back_itself() -> None:
    found, row = migrated(lambda: Flip(-1.0)(WAVE), "Flip", "exact")
    assert row.migrated == 1
    assert found is WAVE
    sample = [WAVE, "a", WAVE]
    found, _ = migrated(lambda: Compose([])(sample), "Compose")
    assert found is sample


def test_gradients_go_through() -> None:
    wave = WAVE.clone().requires_grad_()
    found, row = migrated(lambda: Window()(wave), "Window")
    found.sum().backward()
    assert row.migrated == 1
    assert wave.grad.tolist() == (torch.arange(4.0) * 2).tolist()


def test_images_are_converted_first(moves: list[Any]) -> None:
    made = Compose([Convert(), Window()])
    found, row = migrated(lambda: made(Image()), "Compose", "tolerance")
    assert row.migrated == 1
    assert found.tolist() == made(Image()).tolist()
    # The window, the scale, the image; and back.
    assert [place for _, place in moves] == ["cpu"] * 4


# --- what is left alone ---------------------------------------------------------------------------


def test_calls_that_are_left_to_the_object() -> None:
    assert "Derived, and what that does is not known" in refused_of_derived()
    assert "an image of Pillow is no tensor" in refusal(Flip(), Image())
    assert "no tensor is among its arguments" in refusal(Compose([]), [1, 2])
    assert "given tensors on meta" in refusal(Flip(2.0), WAVE.to("meta"))
    assert "promised to be tolerance" in refusal(Window(), WAVE, accept="exact")
    assert "promised to be tolerance" in refusal(Compose([Flip(), Window()]), WAVE, accept="exact")
    assert "it has a builtins.function" in refusal(Compose([lambda value: value]), WAVE)
    assert f"it has a {HERE}.Derived" in refusal(Compose([Derived()]), WAVE)
    writing = Flip()
    writing.inplace = True
    assert "writes into its argument" in refusal(Compose([writing]), WAVE)
    own: Any = Flip()
    own.forward = lambda image: image
    assert "forward is the program's own" in refusal(Compose([own]), WAVE)
    watched = Flip()
    watched.register_forward_hook(lambda *_: None)
    assert "compiled or has hooks" in refusal(Compose([watched]), WAVE)
    drawing: Any = Flip()
    drawing.iid = True
    assert "its masks are drawn there" in refusal(drawing, WAVE)
    learning: Any = Flip()
    learning.weight = torch.nn.Parameter(WAVE)
    assert "has parameters" in refusal(learning, WAVE)


def refused_of_derived() -> str:
    with pytest.raises(RefusedCallError) as caught:
        migrated(lambda: Derived()(WAVE), "Flip", strict=True)
    return str(caught.value)


def test_a_derived_class_that_a_plan_names_is_the_programs_own() -> None:
    expected = seeded(many(Derived()))
    plan = {f"{HERE}:Derived": {"device": "cpu", "kernel": "torch"}}
    with PipelineMigrator(plan, REGISTRY) as migrator:
        found = seeded(many(Derived()))
    assert found == expected
    by_path = {row.path: row.migrated for row in migrator.report().rows}
    assert by_path[f"{HERE}:Derived/forward"] == 20  # as any function that nothing is known of
