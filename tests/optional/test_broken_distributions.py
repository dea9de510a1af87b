"""Distributions whose metadata is broken, and factories that break every promise, harm nobody."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]  # its types are another package
import pytest

from devicecore import config
from devicecore.device_factory import FactoryRegistry
from devicecore.device_mgr import DeviceMgr
from devicecore.entry_points import entry_points
from devicecore.errors import ConfigurationError
from devicecore.liveness.interpreter import interpreter
from devicecore.liveness.isolation import probe_in_child

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FACTORY = """\
from devicecore.device import Device
from devicecore.device_factory import DeviceFactory
from devicecore.liveness import Liveness
class Fatal(BaseException):
    def __str__(self):
        raise RuntimeError("not even this")
class Factory(DeviceFactory):
    device_type = "NPU"
    priority = 300
    def probe(self, framework=None, *, deep=False):
        return Liveness("live", "ran")
    def create_devices(self, options, name_prefix):
        return [
            Device(f"{name_prefix}/device:NPU:{each.index}", device_class="NPU")
            for each in options.chosen("NPU", options.physical)
        ]
"""


@pytest.fixture
def site(tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of packages with nothing in it."""
    monkeypatch.setenv("DEVICECORE_EXCLUDE", "TENSORRT,ROCM,MPS,XPU,COREML,OPENVINO,WEBGPU,CUDA")
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def install(
    site: Path, name: str, code: str = "", *, requires: str = "", metadata: bytes | None = b""
) -> None:
    """Install a distribution whose factory is FACTORY, with *code* added to its class."""
    (site / f"{name}_module.py").write_text(FACTORY + code)
    info = site / f"{name}-1.5.dist-info"
    info.mkdir()
    text = f"[devicecore.factories]\nNPU = {name}_module:Factory\n"
    (info / "entry_points.txt").write_text(text)
    if metadata is not None:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n{requires}\n".encode()
        (info / "METADATA").write_bytes(head + metadata)


def _registry() -> FactoryRegistry:
    return FactoryRegistry("devicecore.discovery:factories")


def states() -> dict[str, str]:
    registry = _registry()
    return {
        candidate.registration.origin.partition(" (")[0]: candidate.liveness.state
        for candidate in registry.explain("NPU", deep=True)
    }


BROKEN: dict[str, Callable[[Path], object]] = {
    "bytes in entry points": lambda info: (info / "entry_points.txt").write_bytes(b"[x]\na = \xe9"),
    "bytes in the metadata": lambda info: (info / "METADATA").write_bytes(b"Name: x\nAuthor: \xe9"),
    "no metadata": lambda info: None,
    "a pipe": lambda info: os.mkfifo(info / "entry_points.txt"),
    "a folder": lambda info: (info / "entry_points.txt").mkdir(),
    "no format": lambda info: (info / "entry_points.txt").write_text("devicecore.factories = ["),
}


@pytest.mark.parametrize("put", BROKEN.values(), ids=BROKEN)
@pytest.mark.filterwarnings("ignore:left out the plug-ins")
def test_a_broken_distribution_hides_no_other(site: Path, put: Callable[[Path], object]) -> None:
    info = site / "aaa_broken-1.0.dist-info"
    info.mkdir()
    put(info)
    install(site, "good")
    registry = FactoryRegistry("devicecore.discovery:factories")
    for _ in range(3):
        assert [each.distribution for each in registry.factories("NPU")] == ["good"]
    assert states() == {"good 1.5": "live"}


@pytest.mark.parametrize("metadata", [None, b"Author: Andr\xe9\n\n\xff\xfe"], ids=["none", "latin"])
def test_a_plug_in_without_readable_metadata_works(site: Path, metadata: bytes | None) -> None:
    install(site, "good", metadata=metadata)
    assert states() == {"good 1.5": "live"}
    with closing(DeviceMgr.create(registry=_registry())) as made:
        assert made.lookup_device("npu").device_type == "NPU"


def test_extras_and_byte_order_marks_are_read_as_others_read_them(site: Path) -> None:
    install(site, "good")
    info = site / "good-1.5.dist-info"
    for file, text in (
        ("entry_points.txt", "[devicecore.factories]\nNPU = good_module : Factory [fast, new]\n"),
        ("METADATA", "Name: good\nVersion: 1.5\nRequires-Dist: devicecore>=99\n"),
    ):
        (info / file).write_text(text, encoding="utf-8-sig")
    assert states() == {"good 1.5": "version_mismatch"}
    (info / "METADATA").write_text("Name: good\nVersion: 1.5\n", encoding="utf-8-sig")
    assert states() == {"good 1.5": "live"}


@pytest.mark.parametrize(
    "value", ["good_module", "good_module:", ":Factory", "good_module:Factory:x", "a-b:C", "[x]"]
)
def test_an_entry_point_that_names_no_class_says_so(site: Path, value: str) -> None:
    install(site, "good")
    file = site / "good-1.5.dist-info" / "entry_points.txt"
    file.write_text(f"[devicecore.factories]\nNPU = {value}\n")
    (candidate,) = _registry().explain("NPU", deep=True)
    assert candidate.liveness.state == "broken"
    assert "names no class; an entry point says it as module:Class" in candidate.liveness.reason


@pytest.mark.parametrize(
    ("requires", "state"),
    [
        ("Requires-Dist: devicecore>=99; extra == 'new'", "live"),
        ("Requires-Dist: devicecore>=99; python_version < '3'", "live"),
        ("Requires-Dist: devicecore>=99; python_version > '3'", "version_mismatch"),
        ("Requires-Dist: DeviceCore>=99", "version_mismatch"),
        ("Requires-Dist: devicecore>=0\nRequires-Dist: devicecore>=99", "version_mismatch"),
        ("Requires-Dist: devicecore (>=99); extra == 'x'\nRequires-Dist: devicecore>=0", "live"),
        ("Requires-Dist: not/a valid one", "live"),
        ("Requires-Dist: devicecore; os_name ~= 'posix'", "live"),
        (
            "Requires-Dist: devicecore; os_name ~= 'posix'\nRequires-Dist: devicecore>=99",
            "version_mismatch",
        ),
        ("Requires-Dist: numpy; os_name ~= 'posix'", "live"),
        ("Requires-Dist: devicecore; 'a' < 'b' and os_name ~= 'x'", "live"),
        ("Requires-Dist: devicecore; " + "(" * 5000 + "os_name == 'posix'" + ")" * 5000, "live"),
        ("Requires-Dist: devicecore; platform_release > 'not.a.version'", "live"),
    ],
)
def test_only_requirements_that_apply_count(site: Path, requires: str, state: str) -> None:
    install(site, "good", requires=requires)
    assert states() == {"good 1.5": state}


@pytest.mark.parametrize(
    "code",
    [
        "    probe_timeout_s = float('nan')",
        "    probe_timeout_s = float('inf')",
        "    probe_timeout_s = -1",
        "    probe_timeout_s = 'long'",
        "    probe_timeout_s = 10 ** 400",
        "    probe_timeout_s = None",
    ],
)
def test_a_time_out_that_is_none_is_the_usual_one(site: Path, code: str) -> None:
    install(site, "good", code)
    assert states() == {"good 1.5": "live"}


@pytest.mark.parametrize(
    "code",
    [
        "    def create_devices(self, options, name_prefix): raise Fatal",
        "    def create_devices(self, options, name_prefix): raise SystemExit",
        "    def create_devices(self, options, name_prefix): raise GeneratorExit",
        "    def create_devices(self, options, name_prefix): yield 1; raise Fatal",
        "    def create_devices(self, options, name_prefix): return []",
        "    def kernels(self): raise Fatal",
    ],
)
def test_whatever_create_devices_does_costs_only_itself(site: Path, code: str) -> None:
    install(site, "bad", code)
    registry = _registry()
    with closing(DeviceMgr.create(registry=registry)) as manager:
        assert {device.device_type for device in manager} == {"CPU"}
    (candidate,) = registry.explain("NPU")
    assert candidate.liveness.state == "broken"
    assert candidate.liveness.reason


def test_a_probe_that_names_no_device_has_one(site: Path) -> None:
    install(site, "good")
    with closing(DeviceMgr.create(registry=_registry())) as manager:
        assert [str(each.parsed_name.local) for each in manager.devices_by_type("NPU")] == [
            "/device:NPU:0"
        ]


def test_the_time_out_of_an_entry_point_is_its_own(site: Path) -> None:
    hangs = """\
        probe_timeout_s = 0.5
        def probe(self, framework=None, *, deep=False):
            import time
            time.sleep(600)
    """
    install(site, "slow", hangs.replace("        ", "    "))
    report = probe_in_child("slow_module:Factory", None, 3600.0, own_timeout=True)
    assert report.liveness.state == "timed_out"
    assert "0.5 s" in report.liveness.reason


def test_the_import_of_a_large_framework_is_waited_for(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "torch.py").write_text("import time; time.sleep(1.5)")  # a fake, slow on every machine
    install(site, "needs", "import torch\nFactory.probe_timeout_s = 1.0\n")
    found = probe_in_child("needs_module:Factory", None, 1.0, own_timeout=True)
    assert found.liveness.is_live
    strict = probe_in_child("needs_module:Factory", None, 1.0)
    assert strict.liveness.state == "timed_out"
    assert "importing torch" in strict.liveness.reason


def test_a_time_out_is_never_kept(
    site: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = "    def probe(self, framework=None, *, deep=False): __import__('time').sleep(600)\n"
    install(site, "slow", hangs)
    monkeypatch.setenv("DEVICECORE_PROBE_TIMEOUT", "0.5")
    assert states() == {"slow 1.5": "timed_out"}
    assert list((cache_dir / "evidence").glob("*.json")) == []


def test_endless_words_of_a_probe_are_cut(site: Path) -> None:
    floods = """\
    def probe(self, framework=None, *, deep=False):
        import os, sys
        os.write(2, b"first words ")
        for _ in range(300):
            os.write(2, b"noise " * 10_000)
            os.write(1, b"noise " * 10_000)
        os.write(2, b"last words")
        os._exit(3)
    """
    install(site, "loud", floods)
    before = psutil.Process().memory_info().rss
    detail = probe_in_child("loud_module:Factory", None, 60.0).liveness.detail
    assert detail.startswith("first words")
    assert detail.endswith("last words")
    assert "bytes are left out" in detail
    assert len(detail) <= 4000
    assert psutil.Process().memory_info().rss - before < 1 << 23


@pytest.mark.parametrize(
    ("path", "starts"),
    [
        ("/usr/bin/python3", True),
        ("/usr/bin/python3.13t", True),
        ("C:/Python/pythonw.exe", True),
        ("/opt/pypy3.10", True),
        ("/usr/bin/pypy3-c", True),
        ("/usr/bin/python3.12-dbg", True),
        ("/usr/bin/python3-intel64", True),
        ("C:/Python/python_d.exe", True),
        ("C:/Python/pythonservice.exe", False),
        ("/usr/bin/python3.12-config", False),
        ("/usr/bin/qgis", False),
        ("/usr/bin/uwsgi", False),
        ("/opt/blender-4.2/blender", False),
        ("C:/QGIS/bin/qgis-bin.exe", False),
        ("", False),
    ],
)
def test_a_program_that_embeds_python_is_never_started(
    path: str, starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", path)
    assert interpreter() == (path if starts else None)


@pytest.mark.parametrize("text", ["inf", "nan", "-1", "0", "ten", "9" * 5000, "1e999"])
def test_no_number_of_seconds_is_one_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_PROBE_TIMEOUT", text)
    with pytest.raises(ConfigurationError, match="a number of seconds") as caught:
        config.load()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["inf", "-1", "1.5", "9" * 5000, "9" * 30])
def test_no_number_of_mebibytes_is_one_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_CACHE_MIB", text)
    with pytest.raises(ConfigurationError, match="a number of MiB") as caught:
        config.load()
    assert len(str(caught.value)) < 300


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:  # a fake of a user that passwd does not know
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME", "DEVICECORE_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert config.load().cache_dir is None
    registry = _registry()
    assert registry.get_factory("CPU").device_type == "CPU"
    registry.refresh()


@pytest.mark.parametrize("entry", ["y" * 300, "a\0b", "/dev/null/folder", "\udcff"], ids=ascii)
def test_what_can_be_no_folder_on_the_path_is_passed_over(
    entry: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "npu")
    monkeypatch.setattr(sys, "path", [entry, *sys.path, entry])
    assert "npu_module:Factory" in [point.value for point in entry_points("devicecore.factories")]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can")
def test_a_folder_that_nobody_may_enter_is_passed_over(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed" / "packages"
    closed.mkdir(parents=True)
    closed.parent.chmod(0)
    monkeypatch.setattr(sys, "path", [str(closed), *sys.path])
    os.seteuid(54321)
    try:
        with pytest.raises(PermissionError):
            closed.stat()
        entry_points("devicecore.factories")
    finally:
        os.seteuid(0)
