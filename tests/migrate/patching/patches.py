"""For the tests of the injector: a module to patch, and wrappers that write down their calls."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from devicecore.migrate.patching.injector import PatchInjector

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.patching.patch_stack import Wrapper

SOURCE = '''
import asyncio

def plain(x, y=2, *, z: int = 3) -> int:
    """Add them."""
    return x + y + z

plain.mark = "of the user"

def steps(n):
    yield from range(n)

async def later(x):
    await asyncio.sleep(0)
    return x

async def stream(n):
    for i in range(n):
        sent = yield i

class Base:
    def method(self, x):
        return ("Base", x)

    def __call__(self, x):
        return self.forward(x)

class Model(Base):
    factor = 3

    def forward(self, x):
        return x * self.factor

    def method(self, x):
        return ("Model", *super().method(x))

    @staticmethod
    def fixed(x):
        return x + 1

    @classmethod
    def of_class(cls, x):
        return (cls.__name__, x)

class Heir(Model):
    pass
'''


class Log:
    """Makes wrappers that write down their calls."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.calls: list[Any] = []

    def __call__(self, below: Wrapper) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if below.active:
                self.calls.append(self.name or args)
            return below.target(*args, **kwargs)

        return wrapper


def injector_of(*places: tuple[Any, str], log: Any = None) -> PatchInjector:
    injector = PatchInjector()
    for owner, name in places:
        injector.add(owner, name, log or Log())
    return injector


def contents(*owners: Any) -> list[list[tuple[str, Any]]]:
    """Return all that some modules and classes hold, in order."""
    return [list(vars(owner).items()) for owner in owners]


def run(program: Any, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, program, *words], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()
