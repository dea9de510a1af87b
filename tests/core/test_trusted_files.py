"""Files of ours: what others wrote is not believed, and nothing that lies in their place hangs."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from devicecore.errors import ModelError
from devicecore.liveness import Liveness
from devicecore.liveness.evidence import EvidenceCache
from devicecore.liveness.probe_result import ProbeResult, read_probe_result
from devicecore.onnx import OnnxModel
from devicecore.ort.engine_cache import EngineCache, EngineKey
from devicecore.ort.model_digest import model_digest
from devicecore.ort.tiny_model import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX has owners and pipes")

PATIENCE_S = 20.0
LIVE: dict[str, Any] = json.loads(json.dumps(ProbeResult(Liveness("live", "ran"), 60).to_json()))
KEY = EngineKey("aa", "CoreMLExecutionProvider", "1", "CPU", "f32", {})


def promptly(function: Callable[[], Any]) -> Any:
    """Return what *function* returns; one that hangs is a failure."""
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - the test shall see it
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert results, "it hangs"
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def put_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def put_full_folder(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")


def put_huge_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 36)


def write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": put_socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "an empty folder": Path.mkdir,
    "a full folder": put_full_folder,
    "deep lists": write(b"[" * 200_000),
    "deep objects": write(b'{"report":' * 100_000),
    "a long number": write(b"1" * 10_000),
    "a huge file": put_huge_file,
    "no text": write(b"\xff\xfe\x80"),
}
in_the_way = pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY)


def nested(depth: int) -> dict[str, Any]:
    liveness: dict[str, Any] = {"state": "live"}
    for _ in range(depth):
        liveness = {"state": "live", "frameworks": {"torch": liveness}}
    return liveness


DEVICE = {"device_type": "NPU", "index": 0}
FOREIGN: dict[str, dict[str, Any]] = {
    "a list as state": {"state": ["live"]},
    "a list as reason": {"reason": []},
    "a text as seconds": {"seconds": "long"},
    "a list as frameworks": {"frameworks": [1]},
    "a text as a framework": {"frameworks": {"torch": "live"}},
    "a text as devices": {"devices": "none"},
    "a list as details": {"devices": [{**DEVICE, "details": [1]}]},
    "lists in details": {"devices": [{**DEVICE, "details": {"a": [[]]}}]},
    "100 frameworks deep": nested(100),
    "300 frameworks deep": nested(300),
}

OPEN_TO_OTHERS = pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


class TestEvidence:
    @pytest.fixture
    def cache(self, tmp_path: Path) -> EvidenceCache:
        cache = EvidenceCache(tmp_path / "evidence")
        cache.put("key", LIVE)
        assert cache.get("key") == LIVE
        return cache

    @OPEN_TO_OTHERS
    def test_a_folder_that_others_can_write_is_not_believed(
        self, cache: EvidenceCache, mode: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        cache.folder.chmod(mode)
        assert cache.get("key") is None
        cache.put("other", LIVE)
        cache.drop("key")
        cache.forget()
        assert [file.name for file in cache.folder.iterdir()] == ["key.json"]
        assert "can be written to by others" in caplog.text
        assert len(caplog.records) == 1
        cache.folder.chmod(0o700)
        assert cache.get("key") == LIVE

    @only_root
    def test_a_folder_of_somebody_else_is_not_believed(self, cache: EvidenceCache) -> None:
        os.chown(cache.folder, 12345, -1)
        assert cache.get("key") is None
        cache.put("other", LIVE)
        cache.forget()
        assert [file.name for file in cache.folder.iterdir()] == ["key.json"]

    @only_root
    def test_a_file_of_somebody_else_is_not_believed(self, cache: EvidenceCache) -> None:
        os.chown(cache.folder / "key.json", 12345, -1)
        assert cache.get("key") is None
        cache.put("key", LIVE)
        assert cache.get("key") == LIVE

    @pytest.mark.parametrize("mode", [0o666, 0o620, 0o602, 0o664])
    def test_a_file_that_others_can_write_is_not_believed(
        self, cache: EvidenceCache, mode: int
    ) -> None:
        (cache.folder / "key.json").chmod(mode)
        assert cache.get("key") is None
        cache.put("key", LIVE)
        assert cache.get("key") == LIVE

    @pytest.mark.parametrize("mode", [0o700, 0o777])
    def test_a_link_is_not_believed(self, cache: EvidenceCache, tmp_path: Path, mode: int) -> None:
        open_to_all = tmp_path / "open"
        open_to_all.mkdir()
        open_to_all.chmod(mode)
        file = cache.folder / "key.json"
        file.rename(open_to_all / "key.json")
        file.symlink_to(open_to_all / "key.json")
        assert cache.get("key") is None
        cache.put("key", LIVE)
        assert cache.get("key") == LIVE
        assert (open_to_all / "key.json").is_file()

    @pytest.mark.parametrize("shape", FOREIGN.values(), ids=FOREIGN)
    def test_evidence_of_foreign_shape_is_ignored(
        self, cache: EvidenceCache, shape: dict[str, Any]
    ) -> None:
        for report in (shape, {**LIVE, "liveness": {**LIVE["liveness"], **shape}}):
            cache.put("key", report)
            assert read_probe_result(cache.get("key")) is None

    def test_evidence_900_deep_is_ignored(self, cache: EvidenceCache) -> None:
        file = cache.folder / "key.json"
        opened = '"frameworks": {"torch": {"state": "live", ' * 900
        text = f'{opened}"reason": "ran"{"}}" * 900}, "state"'
        file.write_text(file.read_text().replace('"state"', text, 1))
        assert read_probe_result(cache.get("key")) is None

    @pytest.mark.parametrize("when", ["now", [], None, {}, 10**400, "nan"])
    def test_evidence_of_no_time_is_ignored(self, cache: EvidenceCache, when: object) -> None:
        file = cache.folder / "key.json"
        told = json.loads(file.read_text())
        file.write_text(json.dumps({**told, "time": when}))
        assert cache.get("key") is None

    def test_evidence_under_another_name_is_not_believed(self, cache: EvidenceCache) -> None:
        (cache.folder / "key.json").rename(cache.folder / "other.json")
        assert cache.get("other") is None

    @in_the_way
    def test_what_is_in_the_way_is_ignored_and_repaired(
        self, cache: EvidenceCache, put: Callable[[Path], object]
    ) -> None:
        file = cache.folder / "key.json"
        file.unlink()
        put(file)
        assert promptly(lambda: cache.get("key")) is None
        promptly(cache.forget)
        promptly(lambda: cache.put("key", LIVE))
        assert cache.get("key") == LIVE

    def test_nothing_of_somebody_else_is_deleted(self, cache: EvidenceCache) -> None:
        theirs = {"package.json": "{}", "notes.json": '{"time": 1, "report": {}}', "x.txt": ""}
        for name, text in theirs.items():
            (cache.folder / name).write_text(text)
        put_full_folder(cache.folder / "folder.json")
        cache.drop("package")
        cache.forget()
        left = {file.name for file in cache.folder.iterdir()}
        assert left == {*theirs, "folder.json"}
        cache.put("folder", LIVE)
        assert cache.get("folder") == LIVE
        assert len(list(cache.folder.rglob("thesis.txt"))) == 1


class TestEngines:
    @pytest.fixture
    def cache(self, tmp_path: Path) -> EngineCache:
        return EngineCache(tmp_path / "engines")

    @staticmethod
    def build(cache: EngineCache, model: str = "aa") -> bool:
        with cache.entry(evolve(KEY, model=model)) as entry:
            if is_new := entry.is_new:
                (entry.folder / "blob").write_bytes(b"engine")
        return is_new

    @in_the_way
    @pytest.mark.parametrize("name", ["{}", "{}.lock", "{}/entry.json", "{}/engine/blob"])
    def test_what_is_in_the_way_is_ignored_and_repaired(
        self, cache: EngineCache, name: str, put: Callable[[Path], object]
    ) -> None:
        self.build(cache)
        place = cache.folder / name.format(KEY.digest)
        if place.is_dir():
            place.rename(place.with_name("old"))
        else:
            place.unlink(missing_ok=True)
        put(place)
        promptly(lambda: cache.kept(KEY))
        promptly(lambda: self.build(cache))
        assert not promptly(lambda: self.build(cache))

    @pytest.mark.parametrize("name", ["{}", "{}/entry.json", "{}/engine", "{}/engine/blob"])
    @pytest.mark.parametrize("change", ["mode", "link"])
    def test_what_others_can_write_is_built_anew(
        self, cache: EngineCache, tmp_path: Path, name: str, change: str
    ) -> None:
        self.build(cache)
        place = cache.folder / name.format(KEY.digest)
        if change == "mode":
            place.chmod(0o777)
        else:
            place.rename(tmp_path / "elsewhere")
            place.symlink_to(tmp_path / "elsewhere")
        assert cache.kept(KEY) is None
        assert self.build(cache)
        assert not self.build(cache)

    def test_a_mask_that_lets_the_group_write_costs_no_engine(self, cache: EngineCache) -> None:
        before = os.umask(0o002)
        try:
            assert self.build(cache)
            assert not self.build(cache)
        finally:
            os.umask(before)

    def test_room_is_made_of_own_entries_only(self, cache: EngineCache) -> None:
        assert self.build(cache, "a")
        for name in ("photos", "0" * 32):
            put_full_folder(cache.folder / name)
            (cache.folder / name / "entry.json").write_text('{"files": {}, "notes": {}}')
        (cache.folder / "link").symlink_to(cache.folder / "photos")
        small = EngineCache(cache.folder, limit_bytes=0)
        assert self.build(small, "b")
        left = {path.name for path in cache.folder.iterdir() if path.suffix != ".lock"}
        assert left == {"photos", "0" * 32, "link", evolve(KEY, model="b").digest}
        assert len(list(cache.folder.rglob("thesis.txt"))) == 2

    def test_a_folder_of_somebody_else_in_the_way_is_kept(self, cache: EngineCache) -> None:
        cache.folder.mkdir(mode=0o700)
        put_full_folder(cache.folder / KEY.digest)
        assert self.build(cache)
        assert not self.build(cache)
        assert len(list(cache.folder.rglob("thesis.txt"))) == 1


def with_weights(*places: str) -> bytes:
    """Return the bytes of a model that says of its weights that they lie there."""
    said = b""
    for place in map(os.fsencode, places):
        size = len(place)
        length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
        said += b"\x0a\x08location\x12" + length + place
    return tiny_model() + said


class TestDigest:
    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        (tmp_path / "models" / "parts").mkdir(parents=True)
        (tmp_path / "outside.bin").write_bytes(b"outside")
        return tmp_path / "models" / "m.onnx"

    @staticmethod
    def counts(model: Path, weights: Path) -> bool:
        """Return whether the digest of *model* depends on what *weights* holds."""
        digests = set()
        for content in (b"one", b"two"):
            weights.write_bytes(content)
            digests.add(promptly(lambda: model_digest(model)))
        return len(digests) == 2

    @pytest.mark.parametrize(
        "place", ["w.bin", "./w.bin", "parts/../w.bin", "../models/w.bin", "w.bin\0x"]
    )
    def test_weights_in_the_folder_count(self, model: Path, place: str) -> None:
        model.write_bytes(with_weights(place))
        assert self.counts(model, model.with_name("w.bin"))

    def test_weights_behind_links_count_as_for_onnxruntime(self, model: Path) -> None:
        blobs = model.parents[1] / "blobs"  # as the hub of Hugging Face lays models out
        blobs.mkdir()
        (blobs / "m").write_bytes(with_weights("w.bin"))
        model.symlink_to(blobs / "m")
        model.with_name("w.bin").symlink_to(blobs / "w")
        assert self.counts(model, blobs / "w")

    @pytest.mark.parametrize("place", ["../outside.bin", "parts/../../outside.bin", "{absolute}"])
    def test_weights_outside_do_not_count(self, model: Path, place: str) -> None:
        outside = model.parents[1] / "outside.bin"
        model.write_bytes(with_weights(place.format(absolute=outside)))
        assert not self.counts(model, outside)

    @pytest.mark.parametrize("link", ["w.bin", "parts/w.bin"])
    def test_weights_outside_do_not_count_through_links(self, model: Path, link: str) -> None:
        outside = model.parents[1] / "outside.bin"
        model.parent.joinpath(link).symlink_to(outside)
        model.write_bytes(with_weights(link))
        assert not self.counts(model, outside)

    @in_the_way
    def test_whatever_lies_there_never_hangs(
        self, model: Path, put: Callable[[Path], object]
    ) -> None:
        if put is IN_THE_WAY["a huge file"]:
            pytest.skip("weights may be huge")
        put(model.with_name("w.bin"))
        model.write_bytes(with_weights("w.bin"))
        assert len(promptly(lambda: model_digest(model))) == 64

    @pytest.mark.parametrize(
        "place", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "../../../../../../dev/zero"]
    )
    def test_devices_are_left_alone(
        self, model: Path, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plain = tiny_model()
        model.write_bytes(with_weights(place))
        assert len(promptly(lambda: model_digest(model))) == 64
        monkeypatch.chdir(model.parent)
        assert promptly(lambda: model_digest(with_weights(place))) != model_digest(plain)

    def test_a_million_names_take_no_memory(self, model: Path) -> None:
        import tracemalloc

        # Each of them seems to be long, and those overlap.
        content = tiny_model() + b"".join(
            b"\x0a\x08location\x12" + size + b"%d/" % number
            for number in range(10_000)
            for size in (b"\xff\x7f", b"\xff\x1f")
        )
        tracemalloc.start()
        model_digest(content)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 25  # were all of them kept, a third of a gigabyte

    @pytest.mark.parametrize("name", ["a pipe", "a socket", "a device", "an empty folder"])
    def test_what_is_no_file_is_no_model(self, model: Path, name: str) -> None:
        IN_THE_WAY[name](model)
        with pytest.raises(ModelError, match=r"no regular file|a folder"):
            promptly(lambda: OnnxModel(model).digest)
