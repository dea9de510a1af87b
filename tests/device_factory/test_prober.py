"""How liveness is found out: from files alone, here, in a child, or from an earlier answer."""

from __future__ import annotations

import os
import signal
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devicecore import config
from devicecore.device import Device
from devicecore.device_factory import (
    DeviceFactory,
    DeviceOptions,
    FactoryRegistry,
    Registration,
    prober,
)
from devicecore.device_factory.prober import run_concurrently
from devicecore.errors import NotLiveError
from devicecore.ledger import default_ledger
from devicecore.liveness import Liveness, PhysicalDevice

if TYPE_CHECKING:
    from collections.abc import Sequence

UNRULY = Path(__file__).parents[1] / "plugins" / "unruly"

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(UNRULY)


@pytest.fixture
def registry() -> FactoryRegistry:
    return FactoryRegistry()


def put(registry: FactoryRegistry, name: str, *, trusted: bool = False) -> Registration:
    return registry.register(
        Registration("UNRULY", f"unruly:{name}", 300, "unruly", name, trusted=trusted)
    )


class TestWhere:
    def test_a_foreign_one_is_asked_in_a_child(self, registry: FactoryRegistry) -> None:
        registration = put(registry, "SaysWhere")
        assert registry.liveness_of(registration, deep=False).state == "untried"
        liveness = registry.liveness_of(registration)
        assert liveness.is_live
        assert liveness.reason != str(os.getpid())

    def test_one_of_ours_looks_here_and_runs_in_a_child(self, registry: FactoryRegistry) -> None:
        liveness = registry.liveness_of(put(registry, "SaysWhere", trusted=True))
        assert liveness.is_live
        assert liveness.reason != str(os.getpid())

    def test_where_the_framework_runs_here_already_it_is_probed_here(
        self, registry: FactoryRegistry
    ) -> None:
        liveness = registry.liveness_of(put(registry, "RunsHere", trusted=True))
        assert liveness.is_live
        assert liveness.reason == str(os.getpid())

    def test_a_class_that_no_child_could_import_is_probed_here(
        self, registry: FactoryRegistry
    ) -> None:
        class Local(import_module("unruly").SaysWhere):  # type: ignore[misc]
            pass

        registration = registry.register_class("UNRULY", Local)
        assert registration.target is None
        assert registry.liveness_of(registration).reason == str(os.getpid())

    def test_a_class_that_a_child_can_import_is_asked_there(
        self, registry: FactoryRegistry
    ) -> None:
        registration = registry.register_class("UNRULY", import_module("unruly").SaysWhere)
        assert registration.target == "unruly:SaysWhere"
        assert registry.liveness_of(registration).reason not in ("", str(os.getpid()))

    def test_a_frozen_program_has_no_interpreter_to_start(
        self, registry: FactoryRegistry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.frozen", True, raising=False)
        liveness = registry.liveness_of(put(registry, "SaysWhere"))
        assert liveness.reason == str(os.getpid())


class TestOneFrameworkOfTwo:
    def test_one_that_crashes_does_not_take_the_other_along(
        self, registry: FactoryRegistry
    ) -> None:
        registration = put(registry, "CrashesForOne", trusted=True)
        liveness = registry.liveness_of(registration)
        assert liveness.is_live
        assert liveness.of("onnx").is_live
        assert liveness.of("torch").state == "broken"
        assert "SIGSEGV" in liveness.of("torch").reason


def test_what_a_real_use_shows_is_known_to_this_process_and_to_the_next(
    registry: FactoryRegistry,
) -> None:
    registration = put(registry, "BreaksItsPromise")
    assert registry.liveness_of(registration).is_live
    before = default_ledger().total
    with pytest.raises(NotLiveError, match="the driver was unloaded"):
        registry.new_device("UNRULY", DeviceOptions(), "")
    assert default_ledger().total == before + 1
    next_process = FactoryRegistry()
    put(next_process, "BreaksItsPromise")
    for each in (registry, next_process):
        (candidate,) = each.explain("UNRULY")
        assert candidate.liveness.state == "broken"
        assert candidate.liveness.reason == "OSError: the driver was unloaded"
    registry.refresh()
    assert registry.liveness_of(registration).is_live


def test_the_priority_that_a_child_told_is_not_forgotten(registry: FactoryRegistry) -> None:
    for name in ("BreaksItsPromise", "WellBehaved"):
        registry.register(Registration("UNRULY", f"unruly:{name}", None, "unruly", name))
    assert registry.new_device("UNRULY", DeviceOptions(), "").priority == 300
    next_process = FactoryRegistry()
    next_process.register(
        Registration("UNRULY", "unruly:BreaksItsPromise", None, "unruly", "BreaksItsPromise")
    )
    for each in (registry, next_process):
        assert each.explain("UNRULY")[0].liveness.state == "broken"
        assert each.explain("UNRULY")[0].priority == 300


class Plain(DeviceFactory):
    """A factory that leaves its probe to the base class."""

    device_type = "NPU"
    made: int = 2
    closed: int = 0

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return [PhysicalDevice("NPU", index, f"npu-{index}") for index in range(self.made)]

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        factory = self

        class Closing(Device):
            def close(self) -> None:
                factory.closed += 1
                super().close()

        return [Closing(f"{name_prefix}/device:NPU:{index}") for index in range(self.made)]


class TestTheUsualProbe:
    def test_it_looks_only_unless_it_is_told_to_run_something(self) -> None:
        assert Plain().probe() == Liveness("untried", reason="nothing was run yet")

    def test_it_makes_the_devices_and_closes_them(self) -> None:
        factory = Plain()
        answer = factory.probe(deep=True)
        assert answer.is_live
        assert [device.physical_id for device in answer.devices] == ["npu-0", "npu-1"]
        assert factory.closed == 2

    def test_no_device_is_absent(self) -> None:
        factory = Plain()
        factory.made = 0
        assert factory.probe(deep=True).state == "absent"
        assert list(DeviceFactory.kernels(factory)) == []


class TestManyAtOnce:
    """How many probes run beside each other."""

    def most(self, number: int) -> int:
        """Return how many of *number* questions were asked at once, all of which were."""
        running, most, asked = [0], [0], list[int]()
        lock = threading.Lock()

        def ask(question: int) -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.05)
            with lock:
                running[0] -= 1
                asked.append(question)

        run_concurrently(ask, [(question,) for question in range(number)])
        assert sorted(asked) == list(range(number))
        return most[0]

    @pytest.mark.parametrize(("cpus", "most"), [(1, 4), (2, 4), (6, 6)])
    def test_no_more_than_the_machine_can_bear(
        self, cpus: int, most: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config, "effective_cpu_count", lambda: cpus)
        assert self.most(18) == most
        assert self.most(2) == 2
        run_concurrently(self.most, [])

    def test_one_that_hangs_keeps_no_other_from_being_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config, "effective_cpu_count", lambda: 1)
        others, all_asked = set[int](), threading.Event()

        def ask(question: int) -> None:
            if question < 3:
                assert all_asked.wait(60)
            else:
                others.add(question)
                if len(others) == 15:
                    all_asked.set()

        run_concurrently(ask, [(question,) for question in range(18)])

    def test_after_ctrl_c_no_further_one_is_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(config, "effective_cpu_count", lambda: 1)
        asked: list[int] = []
        interrupts = prober._turn.interrupts

        def ask(question: int) -> None:
            asked.append(question)
            if len(asked) == 4:
                signal.raise_signal(signal.SIGINT)
            while prober._turn.interrupts == interrupts:
                time.sleep(0.01)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                run_concurrently(ask, [(question,) for question in range(18)])
        finally:
            signal.signal(signal.SIGINT, before)
        assert sorted(asked) == [0, 1, 2, 3]
