"""Ctrl-C while a scope is entered or left: it is left then, whatever was done so far."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from devicecore import current_device, device_scope  # noqa: E402 - after torch
from devicecore.scope import scope_stack  # noqa: E402
from devicecore.scope.propagation import capture  # noqa: E402
from tests.interrupting import interrupted  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCOPE = device_scope("meta")
INNER = device_scope("cpu:0")


def block() -> None:
    with SCOPE:
        pass


def raising() -> None:
    with pytest.raises(ZeroDivisionError), SCOPE:
        raise ZeroDivisionError


def nested() -> None:
    with SCOPE, INNER, SCOPE:
        pass


@SCOPE
def function() -> None:
    assert torch.empty(1).is_meta


@SCOPE
def generator() -> Iterator[int]:
    with INNER:
        yield 1
        yield 2


def steps() -> None:
    for _ in generator():
        pass


@SCOPE
async def coroutine() -> None:
    await asyncio.sleep(0)


def drive(driven: Any) -> None:
    try:
        while True:
            driven.send(None)
    except StopIteration:
        pass
    finally:
        driven.close()


def task() -> None:
    drive(coroutine())


async def asynchronous() -> None:
    async with SCOPE:
        await asyncio.sleep(0)


def asynchronous_block() -> None:
    drive(asynchronous())


def captured() -> None:
    with SCOPE:
        scopes = capture()
    with scopes:
        pass


def stacked() -> None:
    with ExitStack() as stack:
        stack.enter_context(SCOPE)
        stack.enter_context(INNER)
        stack.enter_context(SCOPE)


def taken_from_a_stack() -> None:
    with ExitStack() as stack:
        stack.enter_context(SCOPE)
        rest = stack.pop_all()
    rest.close()


async def asynchronously_stacked() -> None:
    async with AsyncExitStack() as stack:
        stack.enter_context(INNER)
        await stack.enter_async_context(SCOPE)


def asynchronous_stack() -> None:
    drive(asynchronously_stacked())


def inside_of_torchs() -> None:
    with torch.device("cpu"), SCOPE:
        pass


def states() -> Any:
    return (
        str(torch.get_default_device()),
        str(current_device().parsed_name.local),
        torch._C._len_torch_function_stack(),
        len(scope_stack.here.scopes.frames),
    )


PROGRAMS = [
    block,
    raising,
    nested,
    function,
    steps,
    task,
    asynchronous_block,
    captured,
    inside_of_torchs,
]


# An interrupt into a generator that is being closed is for nobody; and a coroutine is not awaited.
@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine:RuntimeWarning"
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("steps", ["opcode", "line"])
def test_an_interrupt_at_any_place(program: Callable[[], None], steps: str) -> None:
    program()
    before, number = states(), -1
    for number in interrupted(program, "devicecore.scope.", steps=steps):  # noqa: B007 - the last
        assert states() == before
    assert number > 10
    block()
    assert states() == before


def test_what_was_chosen_before_is_chosen_again() -> None:
    torch.set_default_device("cpu:0")
    try:
        before = states()
        for _ in interrupted(block, "devicecore.scope."):
            assert states() == before
    finally:
        torch.set_default_device(None)


@pytest.fixture
def collected_fast() -> Iterator[None]:
    """`gc.collect` looks at what comes from now on only."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("collected_fast")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine:RuntimeWarning"
)
@pytest.mark.parametrize(
    "program",
    [stacked, taken_from_a_stack, asynchronous_stack],
    ids=lambda each: each.__name__,
)
def test_an_interrupt_at_any_place_of_a_stack(program: Callable[[], None]) -> None:
    """`ExitStack` looks up ``type(scope).__exit__``, and is interrupted itself."""
    program()
    before, number = states(), -1
    for number in interrupted(program, "devicecore.scope.", "contextlib", every=7):
        gc.collect()  # it leaves a cycle of the error and its frame
        assert states() == before, number
    assert number > 100
    program()
    assert states() == before


def test_a_stack_that_is_dropped_leaves_its_scopes() -> None:
    before = states()
    stack = ExitStack()
    stack.enter_context(SCOPE)
    assert states() != before
    del stack
    assert states() == before
    cycle: list[Any] = [ExitStack()]
    cycle.append(cycle)
    cycle[0].enter_context(SCOPE)
    assert states() != before
    del cycle
    gc.collect()
    assert states() == before


def test_who_looks_up_the_exit_only_to_check_it_keeps_the_scope() -> None:
    before = states()

    def enter(manager: Any) -> None:
        kind = type(manager)
        assert callable(kind.__exit__)
        kind.__enter__(manager)

    enter(SCOPE)
    assert states() != before
    SCOPE.__exit__(None, None, None)
    assert states() == before


def test_a_stack_that_is_still_there_at_the_end_says_nothing() -> None:
    code = (
        "import torch\nfrom contextlib import ExitStack\nfrom devicecore import device_scope\n"
        "stack = ExitStack(); stack.enter_context(device_scope('meta'))\n"
        "stack.enter_context(device_scope('cpu:0'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("collected_fast")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine:RuntimeWarning"
)
@pytest.mark.parametrize("program", [block, nested, stacked], ids=lambda each: each.__name__)
@pytest.mark.parametrize("again", [1, 2, 3, 5, 8, 13])
def test_a_second_interrupt_while_the_first_is_made_up_for(
    program: Callable[[], None], again: int
) -> None:
    program()
    before = states()
    for number in interrupted(program, "devicecore.scope.", steps="line", again=again):
        gc.collect()
        assert states() == before, number


def test_a_scope_on_a_stack_is_left_with_the_stack() -> None:
    with ExitStack() as stack:
        stack.enter_context(SCOPE)
        assert torch.empty(1).is_meta
    assert not torch.empty(1).is_meta


def test_an_exit_of_the_class_leaves_what_it_is_called_with() -> None:
    scope = SCOPE
    before = states()
    leave = type(scope).__exit__
    with INNER:
        other = device_scope("cpu:0")
        other.__enter__()
        leave(other, None, None, None)
    assert states() == before


def test_asking_for_the_exit_leaves_nothing() -> None:
    with SCOPE:
        assert hasattr(SCOPE, "__exit__")
        assert callable(type(SCOPE).__exit__)
        assert torch.empty(1).is_meta
    SCOPE.__enter__()
    assert torch.empty(1).is_meta
    SCOPE.__exit__(None, None, None)
    assert not torch.empty(1).is_meta


SIGNALS = """
import signal, sys
import torch
from devicecore import current_device, device_scope

scope = device_scope("meta")

@scope
def decorated():
    pass

def entered():
    with scope:
        with device_scope("cpu:0"):
            pass

signal.signal(signal.SIGALRM, signal.default_int_handler)
for number in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + 0.000003 * (number % 97))
        while True:
            entered()
            decorated()
    except KeyboardInterrupt:
        pass
    if torch.get_default_device().type != "cpu" or current_device().device_type != "CPU":
        sys.exit(f"after {number} interrupts torch is on {torch.get_default_device()}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such timer")
def test_real_interrupts_in_a_tight_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
