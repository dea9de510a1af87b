"""Factories whose probes do everything that a probe must not do.

Each is a fault that real drivers and runtimes have shown: they raise, hang, crash, print without
end, leave processes behind, and answer with what nobody asked for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import __main__
from devicecore.device import Device
from devicecore.device_factory import DeviceFactory, DeviceOptions
from devicecore.liveness import Liveness, PhysicalDevice

# The file that a probe writes a process id to, so that a test can look for what it left behind.
PID_FILE = "UNRULY_PID_FILE"


class Factory(DeviceFactory):
    """One that would make a device, if its probe let it."""

    device_type = "UNRULY"
    priority = 300
    frameworks = ("onnx",)

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> list[Device]:
        return [Device(f"{name_prefix}/device:UNRULY:0", device_class="NPU")]


class WellBehaved(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran", devices=(PhysicalDevice("UNRULY", 0, "GPU-0"),))


class Raises(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        msg = "the driver said\nno"
        raise OSError(msg)


class RaisesWhenBuilt(Factory):
    def __init__(self) -> None:
        msg = "no licence"
        raise RuntimeError(msg)

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran")


class ExitsPython(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        sys.exit("I am leaving")


class Hangs(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)


class HangsForAWhile(Factory):
    """Hangs long enough for a time-out, in a thread that a test can wait for."""

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        time.sleep(1.0)
        return Liveness("live", "ran")


class ReturnsNonsense(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return "yes, " + "it is fine " * 100


class ReturnsNothing(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return None


class ListsItsFrameworks(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran", frameworks=["onnx"])


class ListsNamesAsDevices(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran", devices=("GPU-0",))


class StatesAWordAsPriority(Factory):
    priority = "very high"

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness("live", "ran")


class Exits(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        os._exit(3)


class ExitsAsIfAllWereWell(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        os._exit(0)


class Crashes(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        ctypes.string_at(0)


class Floods(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        for stream in (sys.stdout, sys.stderr):
            for _ in range(400):
                stream.write("noise " * 10_000)
            stream.flush()
        os._exit(1)


class FloodsAndAnswers(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        sys.stdout.write("noise " * 1_000_000)
        sys.stderr.write("noise " * 1_000_000)
        return Liveness("live", "ran")


class LeavesAProcess(Factory):
    """A process that it started holds all pipes of the probe, and would live on."""

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ[PID_FILE]).write_text(str(left.pid))
        return Liveness("live", "ran")


class LeavesAProcessAndHangs(LeavesAProcess):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        super().probe(framework, deep=deep)
        time.sleep(600)


class DiesAfterItsAnswer(Factory):
    """As a runtime whose clean-up crashes: the answer is there by then."""

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        def die_when_the_answer_is_there() -> None:
            result = Path(__main__.job["result"])
            while not result.exists():
                pass
            os.kill(os.getpid(), signal.SIGSEGV)

        threading.Thread(target=die_when_the_answer_is_there, daemon=True).start()
        return Liveness("live", "ran")


class SpoilsItsProcess(Factory):
    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        os.chdir("/")
        sys.path.clear()
        sys.stdout.close()
        os.environ.clear()
        return Liveness("live", "ran")


class MeetsTheOther(Factory):
    """Answers "live" only if another probe runs at the same time."""

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        folder = Path(os.environ[PID_FILE])
        folder.mkdir(exist_ok=True)
        (folder / str(os.getpid())).touch()
        for _ in range(600):
            if len(list(folder.iterdir())) >= 2:
                return Liveness("live", "ran")
            time.sleep(0.05)
        return Liveness("broken", reason="nobody came")


class SaysWhere(Factory):
    """Tells the process that it was asked in."""

    runs = False

    def runs_here(self, framework: str | None) -> bool:
        return self.runs

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        if not deep:
            return Liveness("untried")
        return Liveness("live", "ran", reason=str(os.getpid()))


class RunsHere(SaysWhere):
    runs = True


class CrashesForOne(Factory):
    """One framework takes the whole process along, the other one works."""

    frameworks = ("torch", "onnx")

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        if not deep:
            return Liveness("untried")
        if framework in (None, "torch"):
            ctypes.string_at(0)
        return Liveness("live", "ran", reason="onnx computed")


class BreaksItsPromise(WellBehaved):
    def create_devices(self, options: DeviceOptions, name_prefix: str) -> list[Device]:
        msg = "the driver was unloaded"
        raise OSError(msg)
