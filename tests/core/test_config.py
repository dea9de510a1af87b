"""The environment as a value."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import attrs
import pytest

from devicecore import config

NAMES = ("CACHE_DIR", "PREFER", "EXCLUDE", "PROBE_TIMEOUT")


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"DEVICECORE_{name}", raising=False)


def test_without_variables_nothing_is_asked_for() -> None:
    loaded = config.load()
    assert loaded.prefer == ()
    assert loaded.exclude == frozenset()
    assert loaded.probe_timeout_s is None
    assert loaded.cache_dir is not None
    assert loaded.cache_dir.name == "devicecore"
    assert loaded.cache_dir.is_absolute()


def test_each_load_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = config.load()
    monkeypatch.setenv("DEVICECORE_PREFER", "rocm, cuda ,,Cpu")
    monkeypatch.setenv("DEVICECORE_EXCLUDE", "webgpu,COREML")
    monkeypatch.setenv("DEVICECORE_PROBE_TIMEOUT", "2.5")
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", "~/somewhere")
    loaded = config.load()
    assert before.prefer == ()
    assert loaded.prefer == ("ROCM", "CUDA", "CPU")
    assert loaded.exclude == {"WEBGPU", "COREML"}
    assert loaded.probe_timeout_s == 2.5
    assert loaded.cache_dir == Path.home() / "somewhere"


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        config.load().prefer = ("CUDA",)  # type: ignore[misc]


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_time_out_is_a_number_of_seconds(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_PROBE_TIMEOUT", text)
    with pytest.raises(ValueError, match="DEVICECORE_PROBE_TIMEOUT"):
        config.load()


def test_what_hides_devices_is_kept_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    visible = config.load().visible
    assert visible["CUDA_VISIBLE_DEVICES"] == ""  # set and empty: no device at all
    assert "HIP_VISIBLE_DEVICES" not in visible


def test_the_loaders_path_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(["/a", "", "/b"]))
    assert config.load().library_path == ("/a", "/b")


def fake_files(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    monkeypatch.setattr(config, "_read", lambda path: files.get(path, ""))


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"/sys/fs/cgroup/cpu.max": "max 100000"}, 8),
        ({"/sys/fs/cgroup/cpu.max": "250000 100000"}, 3),
        ({"/sys/fs/cgroup/cpu.max": "10000 100000"}, 1),
        ({"/sys/fs/cgroup/cpu.max": "9900000 100000"}, 8),
        (
            {
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            2,
        ),
        (
            {
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            8,
        ),
        ({"/sys/fs/cgroup/cpu.max": "garbage here"}, 8),
    ],
    ids=["none", "unlimited", "2.5 CPUs", "a tenth", "more", "version 1", "no quota", "garbage"],
)
def test_usable_cpus_are_the_affinity_cut_by_the_quota(
    files: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    fake_files(monkeypatch, files)
    assert config.effective_cpu_count() == expected


def test_the_memory_is_cut_by_the_control_group(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_files(monkeypatch, {})
    installed = config.host_memory_bytes()
    assert installed > 2**20
    fake_files(monkeypatch, {"/sys/fs/cgroup/memory.max": "1048576"})
    assert config.host_memory_bytes() == 2**20
    fake_files(monkeypatch, {"/sys/fs/cgroup/memory.max": "max"})
    assert config.host_memory_bytes() == installed


V2 = "35 24 0:30 {root} {mount} rw - cgroup2 cgroup2 rw,nsdelegate"
V1 = "36 32 0:31 {root} {mount}/{name} rw - cgroup cgroup rw,{controllers}"
WHOLE, PART = V2.format(root="/", mount="/cg"), V2.format(root="/a", mount="/part")
OTHER = V2.format(root="/lxc/x", mount="/other")
HALF, TWO, FIVE = "50000 100000", "200000 100000", "500000 100000"


def v1_quota(folder: str, cpus: int) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{cpus}00000", f"{folder}/cpu.cfs_period_us": "100000"}


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
@pytest.mark.parametrize(
    ("groups", "mounts", "files", "expected"),
    [
        ("0::/a/b", V2.format(root="/", mount="/cg"), {"/cg/a/b/cpu.max": TWO}, 2),
        ("0::/a/b", V2.format(root="/", mount="/cg"), {"/cg/a/cpu.max": TWO}, 2),
        ("0::/a/b/", V2.format(root="/", mount="/cg"), {"/cg/a/b/cpu.max": TWO}, 2),
        (
            "0::/a/b",
            V2.format(root="/", mount="/cg"),
            {"/cg/a/b/cpu.max": FIVE, "/cg/a/cpu.max": HALF, "/cg/cpu.max": TWO},
            1,
        ),
        ("0::/a/b", V2.format(root="/", mount="/cg"), {"/cg/c/cpu.max": TWO}, 8),
        ("0::/lxc/x/in", V2.format(root="/lxc/x", mount="/cg"), {"/cg/in/cpu.max": TWO}, 2),
        ("0::/lxc/xy", V2.format(root="/lxc/x", mount="/cg"), {"/cg/cpu.max": TWO}, 2),
        ("0::/../../other", V2.format(root="/", mount="/cg"), {"/cg/cpu.max": TWO}, 2),
        ("0::/a", V2.format(root="/", mount="/c\\040g"), {"/c g/a/cpu.max": TWO}, 2),
        (
            "4:cpu,cpuacct:/slurm/job/step\n0::/",
            V1.format(root="/", mount="/cg", name="cpu,cpuacct", controllers="cpu,cpuacct"),
            v1_quota("/cg/cpu,cpuacct/slurm/job", 3) | v1_quota("/cg/cpu,cpuacct", 6),
            3,
        ),
        (
            "4:cpuacct:/a\n3:cpu:/b",
            V1.format(root="/", mount="/cg", name="cpuacct", controllers="cpuacct")
            + "\n"
            + V1.format(root="/", mount="/cg", name="cpu", controllers="cpu"),
            v1_quota("/cg/cpuacct/a", 1) | v1_quota("/cg/cpu/b", 4),
            4,
        ),
        # The tree of another container, then our own, as a whole or from some group of ours on.
        ("0::/a/b", f"{OTHER}\n{WHOLE}", {"/other/cpu.max": HALF, "/cg/a/cpu.max": TWO}, 2),
        ("0::/a/b", f"{WHOLE}\n{PART}", {"/part/b/cpu.max": TWO}, 2),
        ("0::/a/b", f"{PART}\n{WHOLE}", {"/cg/cpu.max": TWO, "/part/cpu.max": FIVE}, 2),
        ("0::/a/b", f"{OTHER}\n{PART}", {"/other/cpu.max": HALF, "/part/cpu.max": FIVE}, 5),
        ("0::/", f"{OTHER}\n{PART}", {"/other/cpu.max": TWO, "/part/cpu.max": HALF}, 2),
        ("0::/a/b", "", {"/sys/fs/cgroup/a/cpu.max": TWO}, 2),
        ("garbage", "garbage - \n - cgroup2\n", {}, 8),
    ],
)
def test_the_smallest_quota_of_all_groups_around_counts(
    groups: str,
    mounts: str,
    files: dict[str, str],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    proc = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts}
    fake_files(monkeypatch, proc | files)
    assert config.effective_cpu_count() == expected


@pytest.mark.parametrize(
    ("groups", "mounts", "files"),
    [
        (
            "0::/user.slice/app",
            V2.format(root="/", mount="/cg"),
            {"/cg/user.slice/app/memory.max": "max", "/cg/user.slice/memory.max": "1048576"},
        ),
        (
            "7:memory:/lxc/a",
            V1.format(root="/", mount="/cg", name="memory", controllers="memory"),
            {
                "/cg/memory/lxc/a/memory.limit_in_bytes": "9223372036854771712",
                "/cg/memory/lxc/memory.limit_in_bytes": "1048576",
            },
        ),
    ],
    ids=["version 2", "version 1"],
)
def test_the_smallest_memory_of_all_groups_around_counts(
    groups: str, mounts: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts}
    fake_files(monkeypatch, proc | files)
    assert config.host_memory_bytes() == 2**20


def test_this_machine_has_a_cpu() -> None:
    assert 1 <= config.effective_cpu_count() <= (os.cpu_count() or math.inf)
