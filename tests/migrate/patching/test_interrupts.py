"""Ctrl-C while functions are replaced or put back: they are what they were, or all are replaced."""

from __future__ import annotations

import math
import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after torch
from devicecore.migrate.patching.injector import PatchInjector  # noqa: E402
from devicecore.migrate.patching.patch_stack import PATCH_STACKS  # noqa: E402
from tests.interrupting import interrupted  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Not what only looks through all modules, which is very long.
OURS = tuple(
    f"devicecore.{name}"
    for name in (
        *(
            "migrate.patching.injector",
            "migrate.patching.patch_stack",
            "migrate.patching.binding",
            "migrate.patching.pickling",
        ),
        *(
            "migrate.patching.blocks",
            "migrate.patching.import_hooks",
            "migrate.migrator",
            "scope.interrupts",
        ),
    )
)
PLAN = {
    "cv2.resize": {"device": "cpu", "kernel": "torch"},
    "cv2.flip": {"device": "cpu", "kernel": "torch"},
}


class Shapes:
    """Whose methods are patched too."""

    def area(self) -> int:
        return 1

    @staticmethod
    def sides() -> int:
        return 4


class Squares(Shapes):
    """Which inherits them."""


def logged(below: Any) -> Any:
    def wrapper(*args: Any) -> Any:
        return below(*args)

    return wrapper


def injector() -> PatchInjector:
    found = PatchInjector()
    for owner, name in ((math, "sqrt"), (Shapes, "sides"), (Squares, "area")):
        found.add(owner, name, logged)
    return found


def places() -> list[Any]:
    """Return what is where, and who looks at imports."""
    used = sys.modules["made_user"]
    return [
        *(math.sqrt, math.sqrt.__module__, cv2.resize, cv2.resize.__module__, cv2.flip),
        *(vars(Shapes)["area"], vars(Shapes)["sides"], "area" in vars(Squares)),
        *(vars(used)["resize"], vars(used)["sqrt"], list(sys.meta_path), len(PATCH_STACKS._all)),
        sorted(name for name in sys.modules if "migrate.patching.pickling" in name),
    ]


# What is being looked through when an interrupt comes is closed by Python, for nobody.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _user() -> Iterator[None]:
    module = types.ModuleType("made_user")
    vars(module).update(resize=cv2.resize, sqrt=math.sqrt)
    sys.modules["made_user"] = module
    yield
    del sys.modules["made_user"]


def with_injector() -> None:
    with injector():
        assert math.sqrt(4) == 2


def with_migrator() -> None:
    with PipelineMigrator(PLAN):
        pass


def decorated() -> None:
    PipelineMigrator(PLAN)(len)("")


PROGRAMS = [with_injector, with_migrator, decorated]


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_block_leaves_nothing(program: Callable[[], None]) -> None:
    program()
    before, count = places(), 0
    steps, every = ("opcode", 137) if program is with_injector else ("line", 53)
    for _ in interrupted(program, *OURS, steps=steps, every=every):
        assert places() == before
        count += 1
    assert count > 20
    program()
    assert places() == before


@pytest.mark.long
@pytest.mark.parametrize("kind", ["injector", "migrator"])
def test_what_is_interrupted_can_be_put_back(kind: str) -> None:
    """Without a block: applied is undone or complete, and restoring again completes it."""
    made: list[Any] = []

    def program() -> None:
        one: Any = injector() if kind == "injector" else PipelineMigrator(PLAN)
        apply = one.apply_all if kind == "injector" else one.activate
        restore = one.restore_all if kind == "injector" else one.deactivate
        made[:] = [False, restore]
        apply()
        made[0] = True
        restore()

    program()
    before, count = places(), 0
    steps, every = ("opcode", 131) if kind == "injector" else ("line", 59)
    for _ in interrupted(program, *OURS, steps=steps, every=every):
        is_applied, restore = made
        # The instructions between the last change and the caller are where no signal is heard.
        if not is_applied and math.sqrt is not before[0]:
            assert steps == "opcode"
        restore()
        assert places() == before
        count += 1
    assert count > 20
