"""Real third-party distributions, put on the path: found, probed, chosen, and kept apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device_factory import FactoryRegistry, Registration
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import NoKernelError, NotLiveError
from devicecore.kernels import default_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLUGINS = Path(__file__).parents[1] / "plugins"
PACKAGES = ("acme_npu", "bolt_npu", "stale_npu", "broken_npu")


@pytest.fixture
def install(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that puts distributions on the path, and returns a registry."""
    # Our own accelerators are tested elsewhere; here they would only be slow.
    monkeypatch.setenv("DEVICECORE_EXCLUDE", "TENSORRT,ROCM,MPS,XPU,COREML,OPENVINO,WEBGPU")

    def put(*distributions: str) -> FactoryRegistry:
        for distribution in distributions:
            monkeypatch.syspath_prepend(PLUGINS / distribution)
        return FactoryRegistry("devicecore.discovery:factories")

    yield put
    for kernel in default_kernels().find("acme_npu.offset"):
        default_kernels().unregister(kernel)
    default_kernels()._loaded.pop("acme_npu", None)
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES:
            del sys.modules[name]


def of(registry: FactoryRegistry, distribution: str) -> Registration:
    return next(each for each in registry.factories("NPU") if each.distribution == distribution)


def states(registry: FactoryRegistry) -> dict[str, str]:
    return {
        candidate.registration.distribution: candidate.liveness.state
        for candidate in registry.explain("NPU", deep=True)
    }


class TestOne:
    def test_it_outranks_cuda_and_is_not_imported_for_that(
        self, install: Callable[..., FactoryRegistry]
    ) -> None:
        registry = install("acme_npu")
        assert registry.device_priority("NPU") == 220
        types = registry.device_types
        assert types.index("NPU") < types.index("CUDA") < types.index("CPU")
        assert not {name for name in sys.modules if name.startswith("acme_npu")}

    def test_where_it_comes_from_is_known(self, install: Callable[..., FactoryRegistry]) -> None:
        registration = of(install("acme_npu"), "acme-npu")
        assert registration.origin == "acme-npu 1.0 (acme_npu.factory:NpuFactory)"
        assert registration.requires == ">=0.1"
        assert not registration.trusted

    def test_its_devices_and_kernels_work(self, install: Callable[..., FactoryRegistry]) -> None:
        manager = DeviceMgr.create(registry=install("acme_npu"))
        npu = manager.lookup_device("npu")
        assert npu.label == "NPU:0 (Acme NPU 1)"
        assert type(npu).__name__ == "NpuDevice"
        assert npu.frameworks == {"onnx"}
        assert manager.num_device_type("NPU") == 2
        assert npu.compute("acme_npu.scale", 6, factor=7) == 42
        assert npu.compute("acme_npu.offset", 40, 2) == 42
        assert manager.compute("acme_npu.scale", 6, 7) == 42
        assert manager.best_device() is npu
        with pytest.raises(NoKernelError):
            manager.lookup_device("cpu").compute("acme_npu.scale", 6, 7)
        with pytest.raises(NoKernelError, match="for NPU"):
            manager.lookup_device("cpu").compute("acme_npu.offset", 6, 7)
        manager.close()

    def test_a_process_that_knows_nothing_of_it_finds_it(self, cache_dir: Path) -> None:
        code = (
            "from devicecore.device_mgr import DeviceMgr\n"
            "manager = DeviceMgr.create()\n"
            "print(manager.best_device().label, manager.compute('acme_npu.scale', 6, 7))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={
                "DEVICECORE_CACHE_DIR": str(cache_dir),
                "DEVICECORE_EXCLUDE": "TENSORRT,ROCM,MPS,XPU,COREML,OPENVINO,WEBGPU",
                "PYTHONPATH": ":".join([str(PLUGINS / "acme_npu"), *filter(None, sys.path)]),
                "HOME": str(cache_dir),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == "NPU:0 (Acme NPU 1) 42", done.stderr

    def test_without_its_hardware_it_says_so(
        self, install: Callable[..., FactoryRegistry], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ACME_NPU_UNPLUGGED", "1")
        registry = install("acme_npu")
        with pytest.raises(NotLiveError, match="plug one in") as caught:
            registry.get_factory("NPU")
        assert caught.value.state == "absent"
        assert not {name for name in sys.modules if name.startswith("acme_npu")}

    def test_what_was_excluded_is_never_loaded(
        self,
        install: Callable[..., FactoryRegistry],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        registry = install("acme_npu")
        monkeypatch.setenv("DEVICECORE_EXCLUDE", "npu")
        monkeypatch.setenv("ACME_NPU_COUNT_FILE", str(tmp_path / "count"))
        assert states(registry) == {"acme-npu": "excluded"}
        assert not (tmp_path / "count").exists()

    def test_the_second_registry_believes_the_first(
        self,
        install: Callable[..., FactoryRegistry],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        count = tmp_path / "count"
        monkeypatch.setenv("ACME_NPU_COUNT_FILE", str(count))
        first, second = install("acme_npu"), install()
        for registry in (first, second, first):
            assert states(registry) == {"acme-npu": "live"}
        assert len(count.read_text().splitlines()) == 1
        # Another environment is another question.
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
        assert states(install()) == {"acme-npu": "live"}
        assert len(count.read_text().splitlines()) == 2
        first.refresh()
        assert states(first) == {"acme-npu": "live"}
        assert len(count.read_text().splitlines()) == 3


class TestSeveral:
    def test_the_next_live_one_takes_over(self, install: Callable[..., FactoryRegistry]) -> None:
        registry = install("acme_npu", "bolt_npu")
        assert states(registry) == {"acme-npu": "live", "bolt-npu": "shadowed"}
        before = DeviceMgr.create(registry=registry)
        assert before.compute("acme_npu.maker") == "Acme"
        registry.unregister(of(registry, "acme-npu"))
        assert type(registry.get_factory("NPU")).__name__ == "BoltFactory"
        after = DeviceMgr.create(registry=registry)
        assert after.compute("acme_npu.maker") == "Bolt"
        with pytest.raises(NoKernelError):
            after.compute("acme_npu.scale", 6, 7)
        # What was made before goes on with the kernels that it came with.
        assert before.compute("acme_npu.maker") == "Acme"
        assert before.compute("acme_npu.scale", 6, 7) == 42

    def test_the_user_decides_between_types(
        self, install: Callable[..., FactoryRegistry], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry = install("acme_npu")
        monkeypatch.setenv("DEVICECORE_PREFER", "cpu")
        assert registry.device_types[0] == "CPU"

    def test_another_version_is_a_state(self, install: Callable[..., FactoryRegistry]) -> None:
        registry = install("stale_npu", "bolt_npu")
        assert states(registry) == {"bolt-npu": "live", "stale-npu": "version_mismatch"}
        (stale,) = (
            candidate.liveness
            for candidate in registry.explain("NPU")
            if candidate.registration.distribution == "stale-npu"
        )
        assert "stale-npu 0.9 (stale_npu:StaleFactory) wants devicecore >=99" in stale.reason
        assert "pip install --upgrade stale-npu devicecore" in stale.fix
        registry.unregister(of(registry, "bolt-npu"))
        with pytest.raises(NotLiveError, match="version_mismatch"):
            registry.get_factory("NPU")

    def test_one_that_cannot_be_imported_is_broken_and_harms_nobody(
        self, install: Callable[..., FactoryRegistry]
    ) -> None:
        registry = install("broken_npu", "acme_npu", "stale_npu", "bolt_npu")
        with pytest.warns(UserWarning, match="left out") as warnings:
            found = states(registry)
        assert found == {
            "acme-npu": "live",
            "bolt-npu": "shadowed",
            "broken-npu": "broken",
            "stale-npu": "version_mismatch",
        }
        said = " ".join(str(warning.message) for warning in warnings)
        assert "2FAST" in said
        assert "acmechip" in said
        assert "only by case" in said
        (broken,) = (
            candidate
            for candidate in registry.explain("NPU")
            if candidate.registration.distribution == "broken-npu"
        )
        assert "No module named 'no_such_driver_package'" in broken.liveness.reason
        assert "broken_npu/__init__.py" in broken.liveness.detail
        assert broken.registration.origin == "broken-npu 1.1 (broken_npu:BrokenFactory)"
        manager = DeviceMgr.create(registry=registry)
        assert manager.compute("acme_npu.maker") == "Acme"
        assert manager.lookup_device("cpu").compute(lambda device: 1) == 1

    @pytest.mark.parametrize("path", [("acme_npu", "bolt_npu"), ("bolt_npu", "acme_npu")])
    def test_the_order_is_not_that_of_the_path(
        self, path: tuple[str, ...], install: Callable[..., FactoryRegistry]
    ) -> None:
        found = install(*path).factories("NPU")
        assert [each.distribution for each in found] == ["acme-npu", "bolt-npu"]
