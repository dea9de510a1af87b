"""Devices for `devicecore bench`: one that is real, and fakes with the faults of broken ones.

Each fake says that it is one, computes on the CPU, and then does what no CPU does.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.device import Device
from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness
from devicecore.optional import installed
from devicecore.ort import SessionSpec
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.device_factory import DeviceOptions

NAN = float("nan")


class Computing(FakeFactory):
    """Makes a device that computes on the CPU and changes what comes out."""

    frameworks = ("onnx",)

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        return [self._device(f"{name_prefix}/device:{self.device_type}:0")]

    def _device(self, name: str) -> Device:
        made = Changing(
            name,
            device_class="NPU",
            description=f"fake {self.device_type}",
            frameworks=("onnx",),
            session=SessionSpec("CPUExecutionProvider"),
        )
        made.change = self.change
        return made

    @staticmethod
    def change(value: Any) -> Any:
        return value


class Changing(Device):
    """Computes on the CPU, and gives something else."""

    change: Callable[[Any], Any]
    taken: ClassVar[int] = 0

    def compute(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Any:
        outputs = super().compute(kernel, *args, **kwargs)
        Changing.taken += 1 << 20
        return {name: self.change(value) for name, value in outputs.items()}

    def memory_stats(self) -> dict[str, int]:
        return {"limit": 1 << 30, "total": 1 << 30, "free": (1 << 30) - self.taken}


class WrongFactory(Computing):
    device_type = "FAKEWRONG"

    @staticmethod
    def change(value: Any) -> Any:
        return value + 0.5


class NanFactory(Computing):
    device_type = "FAKENAN"

    @staticmethod
    def change(value: Any) -> Any:
        return value * NAN


class LateFactory(Computing):
    """Right at the first run only, as a cache that goes bad."""

    device_type = "FAKELATE"

    @staticmethod
    def change(value: Any) -> Any:
        return value + (0.5 if Changing.taken > 1 << 20 else 0)


class CrashFactory(Computing):
    device_type = "FAKECRASH"

    @staticmethod
    def change(value: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)


class ExitFactory(Computing):
    device_type = "FAKEEXIT"

    @staticmethod
    def change(value: Any) -> Any:
        os.write(1, b"a driver's words\n")
        os.write(2, b"no licence\n")
        os._exit(3)


class RefusingFactory(Computing):
    device_type = "FAKEREFUSING"

    @staticmethod
    def change(value: Any) -> Any:
        raise NotLiveError("FAKEREFUSING:0", "broken", "the fake is out of order")


class DeadFactory(Computing):
    device_type = "FAKEDEAD"
    answer = Liveness("absent", reason="there is no such GPU", fix="buy one")


class RealFactory(Computing):
    """No fake: a plug-in provider that runs on any CPU."""

    device_type = "NXRT"

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        if installed("nxrt_ep_cpu"):
            return super().probe(framework, deep=deep)
        return Liveness("missing", reason="nxrt-ep-cpu is not installed")

    def _device(self, name: str) -> Device:
        import nxrt_ep_cpu

        library = nxrt_ep_cpu.get_library_path()
        return Device(
            name,
            device_class="NPU",
            description="nxrt-ep-cpu",
            frameworks=("onnx",),
            session=SessionSpec("cpu_ep", {}, 0, library),
        )


# What a test calls in a child.


def sums(stage: Callable[[str], None], *numbers: int) -> int:
    stage("adding")
    return sum(numbers)


def hangs(stage: Callable[[str], None]) -> None:
    stage("waiting")
    time.sleep(600)


def raises(stage: Callable[[str], None]) -> None:
    msg = "the driver said no"
    raise OSError(msg)


class Unpicklable:
    def __reduce__(self) -> Any:
        return (int, ("no number",))


def answers_nonsense(stage: Callable[[str], None]) -> Unpicklable:
    return Unpicklable()
