"""Waits of the main thread: it hears a Ctrl-C that the system gives to another thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from devicecore.locks import PatientLock

PROGRAM = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup leaves it ignored
waits, go_on = threading.Event(), threading.Event()

def press():
    waits.wait()
    time.sleep(0.3)  # the main thread waits by then
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

def in_another_thread(call, *args):
    threading.Thread(target=call, args=args, daemon=True).start()
    waits.wait()

def hang(*args):
    waits.set()
    while not go_on.wait(3600):
        pass

threading.Thread(target=press, daemon=True).start()
try:
    WAIT
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""
DEVICE = "from devicecore.device import Device; device = Device('/device:NPU:0', threads=1)\n"
WAITS = {
    "a resource that another thread makes": (
        DEVICE,
        "make = lambda: device.resource_mgr.lookup_or_create('all', 'one', hang)",
        "in_another_thread(make)",
        "make()",
    ),
    "a kernel that runs one call at a time": (
        DEVICE,
        "from devicecore.kernels import Kernel, KernelRegistry",
        "one = Kernel('test.hang', hang, device_type='NPU', thread_safe=False)",
        "in_another_thread(device.compute, one)",
        "device.compute(one)",
    ),
    "a device that is closed while a call computes": (
        DEVICE,
        "def spin(device):",
        "    waits.set()",
        "    while True: pass",
        "device.compute_async(spin)",
        "waits.wait()",
        "device.close()",
    ),
    "a GPU whose queue does not end": (
        "from devicecore_factories._completion import Completion",
        "completion = Completion('NPU:0', hang)",
        "waits.wait()",
        "completion.close()",
    ),
    "a probe in this process": (
        "from devicecore.liveness.isolation import probe_in_thread",
        "probe_in_thread(hang, None, 3600)",
    ),
    "many probes in this process": (
        "from devicecore.liveness.isolation import probe_in_thread",
        "from devicecore.device_factory.prober import run_concurrently",
        "run_concurrently(probe_in_thread, [(hang, None, 3600)] * 30)",
    ),
    "a child of the doctor": (
        "from devicecore.doctor.trial import _run",
        "waits.set()",
        "_run([sys.executable, '-c', 'import time; time.sleep(3600)'], '', 3600)",
    ),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals go to threads on Unix only")
@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_in_another_thread_is_heard(what: str) -> None:
    lines = [line for text in WAITS[what] for line in text.splitlines()]
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("WAIT", "\n    ".join(lines))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert (told.stdout, told.stderr) == ("interrupted\n", "")


def test_a_lock_is_one_that_its_thread_may_take_twice() -> None:
    lock, had = PatientLock(), threading.Event()
    order: list[str] = []

    def other() -> None:
        had.set()
        with lock:
            order.append("other")

    with lock:
        with lock:
            thread = threading.Thread(target=other)
            thread.start()
            assert had.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "other"]


SIGNALS = """
import signal, sys, threading
from devicecore.locks import PatientLock

lock = PatientLock()
signal.signal(signal.SIGALRM, signal.default_int_handler)
for number in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + 0.000003 * (number % 97))
        while True:
            with lock:
                with lock:
                    pass
    except KeyboardInterrupt:
        pass
    if lock._is_owned():
        sys.exit(f"it is held after {number} interrupts")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such timer")
def test_real_interrupts_leave_it_as_it_was() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SIGNALS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
