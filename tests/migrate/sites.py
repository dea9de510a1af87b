"""For the tests of migrated calls: functions and devices that do as they are told."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.device import Device
from devicecore.errors import DeviceGoneError, OutOfMemoryError
from devicecore.migrate.calls.arrays import is_tensor
from devicecore.migrate.calls.call_site import CallPolicy, CallSite
from devicecore.migrate.calls.compare import within_tolerance
from devicecore.migrate.calls.guard import Guard
from devicecore.migrate.calls.report import Tally
from devicecore.migrate.plan.optimization_plan import Options

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "app:f"


class OwnError(Exception):
    """One of a program."""


class Recorded:
    """A function that keeps what it was called with."""

    def __init__(self, answer: Any = "the original's") -> None:
        self.answer = answer
        self.calls: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def failing(error: BaseException) -> Any:
    def compute(*_: Any, **__: Any) -> Any:
        raise error

    return compute


@frozen
class By:
    """Computes calls by a function."""

    function: Callable[..., Any]
    runs_original: bool = False

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        return self.function(*((original,) if self.runs_original else ()), *args, **kwargs)


class FakeGpu(Device):
    """A fake: it computes in the host's memory, and fails at the calls that it is told to."""

    def __init__(self, *, lost_at: int = 0, full_at: tuple[int, ...] = ()) -> None:
        super().__init__("/device:FAKE:0", device_class="GPU", torch_device="cpu")
        self.lost_at = lost_at
        self.full_at = full_at
        self.calls = 0

    def compute(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self.lost_at:
            self.lose("it fell off the bus")
        if self.calls in self.full_at:
            raise OutOfMemoryError(self.name, f"{self.calls} bytes are too many")
        if self.gone:
            raise DeviceGoneError(self.name, self.gone)
        return super().compute(kernel, *args, **kwargs)


def site(
    function: Callable[..., Any],
    *,
    runs_original: bool = False,
    device: Device | None = None,
    strict: bool = False,
    verify: int = 0,
    off: str = "",
    **options: Any,
) -> CallSite:
    used = device or FakeGpu()
    policy = CallPolicy(strict, verify, within_tolerance, Guard(), nullcontext)
    how = By(function, runs_original)
    tally = Tally(PATH, used.label)
    return CallSite(used, used.name, Options(**options), how, policy, tally, off)


def assert_same(found: Any, expected: Any) -> None:
    """Fail unless two results are the same in everything that a program can tell."""
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED"):
            assert found.flags[flag] == expected.flags[flag], flag
        assert found.tobytes() == expected.tobytes()
    elif is_tensor(expected):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.device == expected.device
        assert found.is_contiguous() == expected.is_contiguous()
        assert found.equal(expected)
    else:
        assert found == expected
