"""Threads that add, remove, look up and compute at once: only typed errors, nothing lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import DeviceCoreError
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.ledger import Ledger
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 8
PATIENCE_S = 120.0
TASKS = [f"/job:w/replica:0/task:{number}" for number in range(2)]


class Bench:
    """A manager, and everything that a thread may do to it.

    Each thread owns the devices that it adds, so that it knows which ones must be there.
    """

    def __init__(self) -> None:
        self.kernels = KernelRegistry()
        self.kernels.register(Kernel("op", lambda device, x: x + 1, "NPU"))
        self.kernels.register(Kernel("op", lambda device, x: x + 1, "CPU"))
        self.kernels.register(
            Kernel("state", lambda device: lambda device, x: x + 1, "NPU", stateful=True)
        )
        self.ledger = Ledger()
        # Two that stay, so that the host CPU always has another one to serve.
        hosts = [
            Device(f"{TASKS[0]}/device:CPU:{index}", registry=self.kernels, threads=2)
            for index in range(2)
        ]
        self.manager = DeviceMgr(hosts, registry=FactoryRegistry(), ledger=self.ledger)
        self.stop = threading.Event()
        self.wrong: list[str] = []
        self.done: Counter[str] = Counter()
        self.futures: list[Future[Any]] = []

    def work(self, owner: int) -> None:
        chance = random.Random(owner)
        mine: dict[str, Device] = {}
        actions: list[Callable[[random.Random, int, dict[str, Device]], None]] = [
            self.add,
            self.remove,
            self.look_up,
            self.compute,
            self.compute_async,
            self.change_kernels,
            self.list,
        ]
        while not self.stop.is_set():
            action = chance.choice(actions)
            try:
                action(chance, owner, mine)
            except DeviceCoreError:
                self.done["typed errors"] += 1
            except Exception as error:  # noqa: BLE001 - the test fails with it, in its own thread
                self.wrong.append(f"{action.__name__}: {type(error).__name__}: {error}")
            self.done[action.__name__] += 1
        for name, device in mine.items():
            if self.manager.lookup_device(name) is not device:
                self.wrong.append(f"{name} was lost")

    def add(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        names = [
            f"{chance.choice(TASKS)}/device:NPU:{owner * 100 + chance.randrange(20)}"
            for _ in range(chance.randint(1, 4))
        ]
        new = [Device(name, registry=self.kernels, threads=1) for name in names]
        try:
            self.manager.add_devices(new)
        except DeviceCoreError:
            for device in new:
                if self.manager.contains_device(device.attributes.incarnation):
                    self.wrong.append(f"{device.name} was added by half")
            raise
        mine.update(zip(names, new, strict=True))

    def remove(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        names = chance.sample(sorted(mine), min(len(mine), chance.randint(0, 3)))
        names += chance.choice([[], [], ["CPU:0"], ["NPU:99999"]])  # one of these fails it all
        self.manager.remove_devices(names)
        for name in names:
            mine.pop(name)

    def look_up(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        for name, device in mine.items():
            if self.manager.lookup_device(name) is not device or device not in self.manager:
                self.wrong.append(f"{name} was not found")
        if self.manager.lookup_device("cpu:0").device_type != "CPU":
            self.wrong.append("CPU:0 was not found")
        self.manager.lookup_device(f"NPU:{chance.randrange(900)}")

    def list(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        listed = self.manager.list_devices()
        if [each.parsed_name for each in listed] != sorted(each.parsed_name for each in listed):
            self.wrong.append("the list is out of order")
        if not set(mine.values()) <= set(listed):
            self.wrong.append("the list is not complete")
        if self.manager.host_cpu is None:
            self.wrong.append("the host CPU is gone")
        self.manager.find_devices(chance.choice(["npu", "/task:1", "", "/device:*:3"]))

    def compute(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        if self.manager.compute(chance.choice(["op", "state"]), owner) != owner + 1:
            self.wrong.append("a wrong result")
        for device in mine.values():
            if device.compute("op", owner) != owner + 1:
                self.wrong.append("a wrong result")

    def compute_async(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        devices = self.manager.list_devices()
        future = chance.choice(devices).compute_async("op", owner)
        if chance.random() < 0.3:
            future.cancel()
        self.futures.append(future)

    def change_kernels(self, chance: random.Random, owner: int, mine: dict[str, Device]) -> None:
        own = Kernel("op", lambda device, x: x + 1, "NPU", priority=owner + 1)
        self.kernels.register(own)
        self.manager.compute("op", owner)
        self.kernels.unregister(own)


def hammer(seconds: float) -> Bench:
    bench = Bench()
    threads = [
        threading.Thread(target=bench.work, args=[owner], daemon=True) for owner in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    bench.stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not [thread for thread in threads if thread.is_alive()], "dead lock"
    return bench


def test_threads_at_once() -> None:
    bench = hammer(10.0)
    assert bench.wrong == []
    for action in (
        "add",
        "remove",
        "look_up",
        "compute",
        "compute_async",
        "change_kernels",
        "list",
    ):
        assert bench.done[action]
    bench.manager.close()
    assert not wait(bench.futures, PATIENCE_S).not_done
    for future in bench.futures:
        with suppress(DeviceCoreError, CancelledError):
            assert future.result() in range(1, THREADS + 1)
    assert len(bench.manager) == 0
    assert bench.manager._by_alias == {}


class Registrars:
    """Threads that register and unregister factories of one type, and others that pick."""

    def __init__(self) -> None:
        self.registry = FactoryRegistry()
        self.registry.register_class("NPU", FakeFactory, 0)
        self.names = {"FakeFactory", *(f"Fake{number}" for number in range(1, 4))}
        self.stop = threading.Event()
        self.wrong: list[str] = []

    def register(self, number: int) -> None:
        fields = {"device_type": "NPU", "__module__": __name__}
        factory = type(f"Fake{number}", (FakeFactory,), fields)
        while not self.stop.is_set():
            registration = self.registry.register_class("NPU", factory, number)
            self.pick()
            self.registry.explain()
            self.registry.unregister(registration)

    def pick_on_and_on(self) -> None:
        while not self.stop.is_set():
            self.pick()

    def pick(self) -> None:
        if type(self.registry.get_factory("NPU")).__name__ not in self.names:
            self.wrong.append("a factory that nobody registered")


def test_registering_and_picking_at_once() -> None:
    run = Registrars()
    threads = [threading.Thread(target=run.register, args=[number]) for number in range(1, 4)]
    threads += [threading.Thread(target=run.pick_on_and_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    run.stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not [thread for thread in threads if thread.is_alive()], "dead lock"
    assert run.wrong == []
    assert type(run.registry.get_factory("NPU")) is FakeFactory
