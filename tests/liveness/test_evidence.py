"""Evidence on disk: how long it counts, what it is keyed by, and what cannot harm it."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import invalidate_caches
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.liveness import Liveness
from devicecore.liveness.evidence import (
    LIVE_FOR_S,
    OTHERWISE_FOR_S,
    EvidenceCache,
    evidence_key,
)
from devicecore.liveness.probe_result import ProbeResult

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "devicecore.liveness.evidence"


def plain(report: ProbeResult) -> dict[str, Any]:
    """Return *report* as it comes out of a file."""
    data: dict[str, Any] = json.loads(json.dumps(report.to_json()))
    return data


LIVE = plain(ProbeResult(Liveness("live", "ran"), 60))
BROKEN = plain(ProbeResult(Liveness("broken", reason="no driver")))


@pytest.fixture
def cache(tmp_path: Path) -> EvidenceCache:
    return EvidenceCache(tmp_path / "evidence")


def put_many(folder: Path, writer: int) -> None:
    cache = EvidenceCache(folder)
    for number in range(100):
        cache.put("shared", {**LIVE, "writer": writer, "filler": "x" * (number * 100)})


class TestKeeping:
    def test_what_was_put_is_there(self, cache: EvidenceCache) -> None:
        assert cache.get("key") is None
        cache.put("key", LIVE)
        assert cache.get("key") == LIVE
        assert cache.get("other") is None
        cache.put("key", BROKEN)
        assert cache.get("key") == BROKEN

    def test_another_process_finds_it(self, cache: EvidenceCache) -> None:
        cache.put("key", LIVE)
        assert EvidenceCache(cache.folder).get("key") == LIVE

    def test_it_can_be_forgotten(self, cache: EvidenceCache) -> None:
        cache.forget()
        cache.put("key", LIVE)
        (cache.folder / "probe.lock").touch()
        cache.forget()
        assert cache.get("key") is None
        assert (cache.folder / "probe.lock").exists()

    def test_it_lies_in_the_configured_folder(self, cache_dir: Path) -> None:
        EvidenceCache().put("key", LIVE)
        assert (cache_dir / "evidence" / "key.json").exists()

    def test_others_cannot_read_it(self, cache: EvidenceCache) -> None:
        cache.put("key", LIVE)
        assert cache.folder.stat().st_mode & 0o077 == 0

    def test_nothing_half_written_stays(self, cache: EvidenceCache) -> None:
        with pytest.raises(TypeError):
            cache.put("key", {"liveness": object()})
        cache.put("key", LIVE)
        assert [file.name for file in cache.folder.iterdir()] == ["key.json"]


class TestAge:
    @pytest.mark.parametrize(
        ("report", "lifetime_s"),
        [(LIVE, LIVE_FOR_S), (BROKEN, OTHERWISE_FOR_S)],
        ids=["live", "no"],
    )
    def test_it_counts_for_a_while(
        self,
        report: dict[str, Any],
        lifetime_s: float,
        cache: EvidenceCache,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        cache.put("key", report)
        now = time.time()
        monkeypatch.setattr("time.time", lambda: now + lifetime_s - 1)
        assert cache.get("key") == report
        monkeypatch.setattr("time.time", lambda: now + lifetime_s + 1)
        assert cache.get("key") is None

    def test_failures_are_forgotten_sooner(self) -> None:
        assert OTHERWISE_FOR_S < LIVE_FOR_S

    def test_what_comes_from_the_future_does_not_count(
        self, cache: EvidenceCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache.put("key", LIVE)
        monkeypatch.setattr("time.time", lambda: 0.0)
        assert cache.get("key") is None


class TestHarm:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "3",
            "null",
            "{}",
            '{"time": "noon", "report": {"liveness": {"state": "live"}}}',
            '{"time": 1e400, "report": {"liveness": {"state": "live"}}}',
            '{"time": 0}',
            '{"time": 0, "report": []}',
            '{"time": 0, "report": {"liveness": "live"}}',
            '{"time": 0, "report": {"liveness": null}}',
            "\0\0\0",
        ],
    )
    def test_garbage_is_no_evidence(self, text: str, cache: EvidenceCache) -> None:
        cache.put("key", LIVE)
        (cache.folder / "key.json").write_text(text, encoding="utf-8")
        assert cache.get("key") is None
        cache.put("key", LIVE)
        assert cache.get("key") == LIVE

    def test_bytes_that_are_no_text_are_no_evidence(self, cache: EvidenceCache) -> None:
        cache.put("key", LIVE)
        (cache.folder / "key.json").write_bytes(b"\xff\xfe\x80")
        assert cache.get("key") is None

    def test_a_folder_in_the_way_is_no_evidence(self, cache: EvidenceCache) -> None:
        (cache.folder / "key.json").mkdir(parents=True)
        assert cache.get("key") is None
        cache.put("key", LIVE)
        cache.forget()

    def test_a_folder_that_cannot_be_made_costs_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        cache = EvidenceCache(tmp_path / "file" / "evidence")
        cache.put("key", LIVE)
        assert cache.get("key") is None
        cache.forget()

    def test_a_folder_that_cannot_be_written_costs_nothing(
        self, cache: EvidenceCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError

        monkeypatch.setattr("tempfile.mkstemp", refuse)
        cache.put("key", LIVE)
        assert cache.get("key") is None

    def test_writers_at_once_leave_one_of_theirs(self, cache: EvidenceCache) -> None:
        with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
            writers = [pool.submit(put_many, cache.folder, writer) for writer in range(4)]
            while not all(writer.done() for writer in writers):
                kept = cache.get("shared")
                assert kept is None or kept["writer"] in range(4)
        for writer in writers:
            writer.result()
        kept = cache.get("shared")
        assert kept is not None
        assert len(kept["filler"]) == 9900
        assert [file.name for file in cache.folder.iterdir()] == ["shared.json"]


class TestKey:
    """A key changes with whatever could change the answer."""

    def test_it_is_the_same_twice(self) -> None:
        assert evidence_key("CUDA", ["torch"], "1") == evidence_key("CUDA", ["torch"], "1")
        assert evidence_key("CUDA", ["b", "a"]) == evidence_key("CUDA", ["a", "b", "a"])

    def test_it_is_a_file_name(self) -> None:
        assert evidence_key("CUDA/../\0é\udce9", []).isalnum()

    def test_the_subject_and_the_versions_matter(self) -> None:
        keys = [
            evidence_key("CUDA", []),
            evidence_key("ROCM", []),
            evidence_key("CUDA", [], "1.0"),
            evidence_key("CUDA", [], "1.1"),
            evidence_key("CUDA", ["torch"]),
        ]
        assert len(set(keys)) == len(keys)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("CUDA_VISIBLE_DEVICES", ""),
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("HIP_VISIBLE_DEVICES", "0"),
            ("ONEAPI_DEVICE_SELECTOR", "level_zero:1"),
            ("LD_LIBRARY_PATH", "/opt/somewhere/lib"),
        ],
    )
    def test_what_hides_devices_matters(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(name, raising=False)
        before = evidence_key("CUDA", [])
        monkeypatch.setenv(name, value)
        assert evidence_key("CUDA", []) != before

    def test_the_environment_matters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = evidence_key("CUDA", [])
        monkeypatch.setattr(sys, "prefix", "/another/environment")
        assert evidence_key("CUDA", []) != before

    def test_the_user_matters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = evidence_key("CUDA", [])
        monkeypatch.setattr("os.getuid", lambda: 12345)
        assert evidence_key("CUDA", []) != before

    def test_the_driver_and_the_gpus_matter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        driver = tmp_path / "version"
        monkeypatch.setattr(f"{MODULE}._DRIVER_FILES", (str(driver),))
        monkeypatch.setattr(f"{MODULE}._GPU_PATTERNS", ((str(tmp_path), "nvidia[0-9]*"),))
        keys = [evidence_key("CUDA", [])]
        driver.write_text("580.65")
        keys.append(evidence_key("CUDA", []))
        driver.write_text("590.10")
        keys.append(evidence_key("CUDA", []))
        (tmp_path / "nvidia0").touch()
        keys.append(evidence_key("CUDA", []))
        assert len(set(keys)) == len(keys)

    def test_an_upgraded_package_matters(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(tmp_path)
        keys = [evidence_key("CUDA", ["backend_x"])]
        (tmp_path / "backend_x").mkdir()
        init = tmp_path / "backend_x" / "__init__.py"
        init.write_text("__version__ = '1.0'")
        invalidate_caches()  # the folder was searched when it was empty
        keys.append(evidence_key("CUDA", ["backend_x"]))
        init.write_text("__version__ = '1.10'")
        keys.append(evidence_key("CUDA", ["backend_x"]))
        assert len(set(keys)) == len(keys)


def test_what_is_kept_is_plain_json(cache: EvidenceCache) -> None:
    cache.put("key", LIVE)
    kept = json.loads((cache.folder / "key.json").read_text("utf-8"))
    assert set(kept) == {"mark", "key", "time", "report"}
    assert ProbeResult.from_json(kept["report"]) == ProbeResult(Liveness("live", "ran"), 60)
