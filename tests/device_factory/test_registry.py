"""`FactoryRegistry`: who serves a type, why, and what becomes of the others.

The factories are fakes; what misbehaves in a process of its own is in ``tests/plugins/unruly``.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device_factory import DeviceOptions, FactoryRegistry, Registration
from devicecore.errors import NotLiveError, UnknownDeviceError
from devicecore.kernels import Kernel
from devicecore.liveness import Liveness
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture
def registry() -> FactoryRegistry:
    return FactoryRegistry()


def fake(name: str = "Fake", **fields: Any) -> type[FakeFactory]:
    """Return a new class, so that each has a name and counts of its own."""
    return type(name, (FakeFactory,), {"device_type": "NPU", "__module__": __name__, **fields})


def put(registry: FactoryRegistry, name: str = "Fake", **fields: Any) -> Registration:
    priority = fields.pop("priority", 50)
    factory = fake(name, **fields)
    return registry.register_class(factory.device_type, factory, priority)


def serving(registry: FactoryRegistry, device_type: str = "NPU", *args: str) -> str:
    return type(registry.get_factory(device_type, *args)).__name__


def dead(reason: str = "no driver", state: Any = "broken", **fields: Any) -> Liveness:
    return Liveness(state, reason=reason, **fields)


class TestLivePick:
    def test_the_highest_live_one_serves(self, registry: FactoryRegistry) -> None:
        put(registry, "Best", priority=3, answer=dead())
        put(registry, "Second", priority=2)
        put(registry, "Third", priority=1)
        assert serving(registry) == "Second"

    def test_a_spare_takes_over_when_it_goes(self, registry: FactoryRegistry) -> None:
        best = put(registry, "Best", priority=3)
        put(registry, "Spare", priority=2)
        assert serving(registry) == "Best"
        registry.unregister(best)
        assert serving(registry) == "Spare"
        registry.register(best)
        assert serving(registry) == "Best"

    def test_a_better_one_is_taken_at_once(self, registry: FactoryRegistry) -> None:
        put(registry, "Good", priority=1)
        assert serving(registry) == "Good"
        put(registry, "Better", priority=2)
        assert serving(registry) == "Better"

    def test_a_better_one_that_comes_during_the_choice_is_taken_next(
        self, registry: FactoryRegistry
    ) -> None:
        class Slow(FakeFactory):
            device_type = "NPU"

            def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
                put(registry, "Better", priority=99)
                return super().probe(framework, deep=deep)

        registry.register_class("NPU", Slow, 1)
        assert serving(registry) == "Slow"
        assert serving(registry) == "Better"

    @pytest.mark.parametrize("evidence", ["metadata", "opened"])
    def test_what_did_not_run_is_not_live(self, evidence: Any, registry: FactoryRegistry) -> None:
        put(registry, answer=Liveness("live", evidence))
        with pytest.raises(NotLiveError) as caught:
            registry.get_factory("NPU")
        assert caught.value.state == "untried"

    def test_none_is_live(self, registry: FactoryRegistry) -> None:
        put(registry, "First", priority=2, answer=dead("there is no GPU", "absent"))
        put(registry, "Second", priority=1, answer=dead("no driver", "missing", fix="install it"))
        with pytest.raises(NotLiveError) as caught:
            registry.get_factory("NPU")
        assert (caught.value.what, caught.value.state) == ("NPU", "missing")
        assert caught.value.fix == "install it"

    def test_each_framework_is_chosen_for_itself(self, registry: FactoryRegistry) -> None:
        torch_only = Liveness(
            "live", "ran", frameworks={"torch": Liveness("live", "ran"), "onnx": dead()}
        )
        put(registry, "Best", priority=2, answer=torch_only, frameworks=("torch", "onnx"))
        put(registry, "Spare", priority=1, frameworks=("onnx",))
        assert serving(registry, "NPU") == "Best"
        assert serving(registry, "NPU", "torch") == "Best"
        assert serving(registry, "NPU", "onnx") == "Spare"
        with pytest.raises(NotLiveError, match="NPU for jax"):
            registry.get_factory("NPU", "jax")

    def test_only_what_is_asked_for_is_probed(self, registry: FactoryRegistry) -> None:
        probed: list[tuple[str, str | None]] = []

        class Watched(FakeFactory):
            frameworks: tuple[str, ...] = ("torch", "onnx")

            def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
                probed.append((self.device_type, framework))
                return super().probe(framework, deep=deep)

        for device_type in ("NPU", "TPU"):
            registry.register_class(
                device_type, type(device_type, (Watched,), {"device_type": device_type})
            )
        assert probed == []
        registry.get_factory("NPU", "torch")
        assert probed == [("NPU", "torch")]
        registry.get_factory("NPU", "torch")
        registry.explain()
        assert probed == [("NPU", "torch")]

    def test_who_asks_at_once_gets_one_probe(self, registry: FactoryRegistry) -> None:
        probes = itertools.count()
        start = threading.Barrier(8)

        class Counted(FakeFactory):
            device_type = "NPU"

            def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
                next(probes)
                return super().probe(framework, deep=deep)

        registry.register_class("NPU", Counted)

        def ask() -> None:
            start.wait()
            registry.get_factory("NPU")

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert next(probes) == 1

    def test_what_failed_is_not_tried_again_until_it_is_refreshed(
        self, registry: FactoryRegistry
    ) -> None:
        factory = fake(answer=dead())
        registry.register_class("NPU", factory)
        with pytest.raises(NotLiveError):
            registry.get_factory("NPU")
        factory.answer = None
        with pytest.raises(NotLiveError):
            registry.get_factory("NPU")
        registry.refresh()
        assert serving(registry) == "Fake"

    def test_an_interrupted_probe_is_not_remembered(
        self, registry: FactoryRegistry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registration = put(registry)
        with monkeypatch.context() as patch:
            patch.setenv("DEVICECORE_PROBE_TIMEOUT", "soon")
            with pytest.raises(ValueError, match="DEVICECORE_PROBE_TIMEOUT"):
                registry.liveness_of(registration)
        with monkeypatch.context() as patch:
            patch.setattr("devicecore.device_factory.prober._probed_here", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                registry.get_factory("NPU")
        assert serving(registry) == "Fake"

    def test_the_pick_is_kept_for_the_same_factory(self, registry: FactoryRegistry) -> None:
        put(registry)
        assert registry.get_factory("NPU") is registry.get_factory("NPU")


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


class TestExplaining:
    def test_every_candidate_in_order_with_its_state(self, registry: FactoryRegistry) -> None:
        put(registry, "Broken", priority=4, answer=dead("the driver is too old", fix="upgrade"))
        put(registry, "Best", priority=3)
        put(registry, "Spare", priority=2)
        put(registry, "Absent", priority=1, answer=dead("no GPU", "absent"))
        assert {each.liveness.state for each in registry.explain("NPU")} == {"untried"}
        found = registry.explain("NPU", deep=True)
        assert [(each.registration.entry_name, each.liveness.state) for each in found] == [
            ("Broken", "broken"),
            ("Best", "live"),
            ("Spare", "shadowed"),
            ("Absent", "absent"),
        ]
        assert [each.chosen for each in found] == [False, True, False, False]
        assert found[0].liveness.reason == "the driver is too old"
        assert found[0].liveness.fix == "upgrade"
        assert [each.priority for each in found] == [4, 3, 2, 1]
        with pytest.raises(UnknownDeviceError, match="TPU"):
            registry.explain("TPU")

    def test_what_the_user_excluded_is_never_asked(
        self, registry: FactoryRegistry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Never(FakeFactory):
            device_type = "NPU"

            def __init__(self) -> None:
                pytest.fail("it was built")

        registry.register_class("NPU", Never, 9)
        monkeypatch.setenv("DEVICECORE_EXCLUDE", "npu")
        (candidate,) = registry.explain(deep=True)
        assert candidate.liveness.state == "excluded"
        with pytest.raises(NotLiveError, match="DEVICECORE_EXCLUDE"):
            registry.get_factory("NPU")

    def test_a_plug_in_for_another_version_is_never_imported(
        self, registry: FactoryRegistry
    ) -> None:
        registry.register(
            Registration("NPU", "no_such_module:F", 9, "acme", "F", "1.0", requires=">=99")
        )
        (candidate,) = registry.explain(deep=True)
        assert candidate.liveness.state == "version_mismatch"
        assert "acme 1.0 (F) wants devicecore >=99" in candidate.liveness.reason


class TestKernels:
    def test_kernels_come_and_go_with_their_factory(self, registry: FactoryRegistry) -> None:
        put(registry, "Host", device_type="CPU", count=1)
        best = put(registry, "Best", priority=2, own_kernels=(Kernel("op", lambda device: "best"),))
        put(registry, "Spare", priority=1, own_kernels=(Kernel("op", lambda device: "spare"),))
        before = registry.new_device("NPU", DeviceOptions(), "")
        registry.unregister(best)
        after = registry.new_device("NPU", DeviceOptions(), "")
        assert (before.compute("op"), after.compute("op")) == ("best", "spare")
        assert isinstance(before, Device)


def test_a_forked_child_is_not_locked_out(
    registry: FactoryRegistry, in_fork: Callable[..., Any], cache_dir: Path
) -> None:
    probing, go_on = threading.Event(), threading.Event()

    class Slow(FakeFactory):
        device_type = "TPU"

        def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
            probing.set()
            go_on.wait(60)
            return super().probe(framework, deep=deep)

    put(registry, "Quick")
    registry.register_class("TPU", Slow)
    thread = threading.Thread(target=registry.get_factory, args=["TPU"])
    thread.start()
    assert probing.wait(60)

    def child() -> list[str]:
        go_on.set()  # the parent's probe does not go on in the child
        return [serving(registry), serving(registry, "TPU")]

    try:
        with registry._lock:
            assert in_fork(child) == ["Quick", "Slow"]
    finally:
        go_on.set()
        thread.join()
