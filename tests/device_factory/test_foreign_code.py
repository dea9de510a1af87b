"""Factories and kernels of others that return nonsense or leave: each costs only itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import (
    Device,
    DeviceFactory,
    DeviceMgr,
    FactoryRegistry,
    Kernel,
    Liveness,
    PhysicalDevice,
    Registration,
    default_ledger,
)
from devicecore.errors import NotLiveError
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from devicecore import DeviceOptions


def registry_with(*factories: type[DeviceFactory]) -> FactoryRegistry:
    registry = FactoryRegistry("devicecore.discovery:factories")
    for registration in registry.factories():
        if registration.device_type != "CPU":
            registry.unregister(registration)
    for factory in factories:
        registry.register_class("NPU", factory, factory.priority)
    return registry


class TestAnswers:
    @pytest.mark.parametrize(
        "nonsense",
        [{"reason": 12}, {"detail": 7}, {"fix": ["a"]}, {"reason": None}],
        ids=str,
    )
    def test_a_liveness_holds_texts_only(self, nonsense: dict[str, Any]) -> None:
        with pytest.raises(TypeError):
            Liveness("broken", "ran", **nonsense)
        with pytest.raises(TypeError):
            Liveness.from_json({"state": "broken", **nonsense})

    def test_a_gpu_holds_what_it_should(self) -> None:
        with pytest.raises(TypeError):
            PhysicalDevice("NPU", "0")  # type: ignore[arg-type]

    def test_a_reason_cannot_mess_up_a_terminal(self) -> None:
        answer = Liveness("broken", reason="\x1b[31mred\nalert\t" + "!" * 9000, fix="do\nthis")
        assert answer.reason.startswith("[31mred alert !!!")
        assert len(answer.reason) == 500
        assert answer.fix == "do this"

    def test_a_probe_that_answers_nonsense_is_broken(self) -> None:
        class Npu(FakeFactory):
            device_type, priority = "NPU", 300

            def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
                return Liveness("broken", "ran", reason=12)  # type: ignore[arg-type]

        registry = registry_with(Npu)
        (candidate,) = registry.explain("NPU", deep=True)
        assert candidate.liveness.state == "broken"
        assert "TypeError" in candidate.liveness.reason


class TestMaking:
    def test_kernels_that_are_none(self) -> None:
        class Npu(FakeFactory):
            device_type, priority = "NPU", 300
            own_kernels = (1, 2)  # type: ignore[assignment]

        manager = DeviceMgr.create(registry=registry_with(Npu))
        assert [device.device_type for device in manager] == ["CPU"]

    @pytest.mark.parametrize(
        "error", [SystemExit("I am leaving"), InterruptedError("a driver's"), GeneratorExit()]
    )
    def test_leaving_while_devices_are_made(self, error: BaseException) -> None:
        class Npu(FakeFactory):
            device_type, priority = "NPU", 300

            def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
                raise error

        manager = DeviceMgr.create(registry=registry_with(Npu))
        assert [device.device_type for device in manager] == ["CPU"]

    def test_leaving_while_being_built(self) -> None:
        class Npu(FakeFactory):
            device_type, priority = "NPU", 300

            def __init__(self) -> None:
                sys.exit("I am leaving")

        (candidate,) = registry_with(Npu).explain("NPU", deep=True)
        assert candidate.liveness.state == "broken"

    def test_the_next_one_serves_if_the_import_fails_here_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A module may import in the child and not in the parent, such as beside another one."""
        (tmp_path / "fickle.py").write_text(
            "import sys\n"
            "if 'pytest' in sys.modules: raise RuntimeError('not beside pytest')\n"
            "from devicecore.testing import FakeFactory\n"
            "class Fickle(FakeFactory): device_type = 'NPU'\n"
        )
        monkeypatch.syspath_prepend(tmp_path)

        class Spare(FakeFactory):
            device_type, priority = "NPU", 1

        registry = registry_with(Spare)
        registry.register(Registration("NPU", "fickle:Fickle", 300, "fickle", "fickle"))
        assert registry.explain("NPU", deep=True)[0].liveness.state == "live"
        assert isinstance(registry.get_factory("NPU"), Spare)
        assert "not beside pytest" in registry.explain("NPU")[0].liveness.reason


class TestDoubt:
    def test_a_device_that_is_not_live_after_all_is_probed_anew(self) -> None:
        probes = []

        class Npu(FakeFactory):
            device_type, priority = "NPU", 300

            def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
                probes.append(framework)
                return super().probe(framework, deep=deep)

        registry = registry_with(Npu)
        npu = DeviceMgr.create(registry=registry).lookup_device("npu")
        asked, moves = len(probes), default_ledger().total

        def kernel(device: Device) -> None:
            raise NotLiveError(device.name, "broken", "the driver is gone")

        for _ in range(3):
            with pytest.raises(NotLiveError):
                npu.compute(kernel)
        assert default_ledger().total == moves + 1
        assert len(probes) == asked
        assert isinstance(registry.get_factory("NPU"), Npu)
        assert len(probes) == asked + 1


class TestStamps:
    def test_mending_a_module_of_one_file_is_seen_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module = tmp_path / "mended.py"
        text = (
            "from devicecore import Liveness\n"
            "from devicecore.testing import FakeFactory\n"
            "class Mine(FakeFactory):\n"
            "    device_type = 'NPU'\n"
            "    answer = Liveness({state!r}, 'ran')\n"
        )
        module.write_text(text.format(state="broken"))
        monkeypatch.syspath_prepend(tmp_path)
        registration = Registration("NPU", "mended:Mine", 300, "mended", "mended")

        def state() -> str:
            registry = registry_with()
            registry.register(registration)
            return registry.explain("NPU", deep=True)[0].liveness.state

        assert state() == "broken"
        module.write_text(text.format(state="live") + "# mended\n")
        assert state() == "live"


def test_a_kernel_says_for_whom_it_is_in_known_words() -> None:
    assert Kernel("x.y", print, device_type="cpu").device_type == "CPU"
    with pytest.raises(ValueError, match="framework"):
        Kernel("x.y", print, framework="jax")
