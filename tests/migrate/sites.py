"""For the tests of migrated calls: strategies that do as they are told, and fake devices."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.device import Device
from devicecore.errors import DeviceGoneError, OutOfMemoryError
from devicecore.migrate.guard import Guard
from devicecore.migrate.migrator import keeps
from devicecore.migrate.plan import Options
from devicecore.migrate.report import Tally
from devicecore.migrate.site import Care, Site

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "app:f"


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


class FakeCard(Device):
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
) -> Site:
    used = device or FakeCard()
    care = Care(strict, verify, keeps, Guard(), nullcontext)
    how = By(function, runs_original)
    tally = Tally(PATH, used.label)
    return Site(used, used.name, Options(**options), how, care, tally, off)
