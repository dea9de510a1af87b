"""Ctrl-C while a scope is entered or left: it is left then, whatever was done so far."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from devicecore import current_device, device_scope  # noqa: E402 - after torch
from devicecore.scope import chain  # noqa: E402
from devicecore.scope.carrying import capture  # noqa: E402
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


def inside_of_torchs() -> None:
    with torch.device("cpu"), SCOPE:
        pass


def states() -> Any:
    return (
        str(torch.get_default_device()),
        str(current_device().parsed_name.local),
        torch._C._len_torch_function_stack(),
        len(chain.here.scopes.frames),
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


def test_a_scope_on_a_stack_is_left_with_the_stack() -> None:
    """`ExitStack` itself holds what is to be left; an interrupt in there is its own affair."""
    with ExitStack() as stack:
        stack.enter_context(SCOPE)
        assert torch.empty(1).is_meta
    assert not torch.empty(1).is_meta


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
