"""The folder of engines: who may use it, who waits, what is deleted, and what is never trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve, fields
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from devicecore.errors import ConfigurationError, EngineCacheError
from devicecore.ort.engine_cache import EngineCache, EngineKey

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = EngineKey("aa", "OpenVINOExecutionProvider", "1.8.1", "CPU", "f32", {"load_config": "{}"})
BUILD = """\
import sys
from pathlib import Path
from devicecore.ort.engine_cache import EngineCache, EngineKey
key = EngineKey("aa", "OpenVINOExecutionProvider", "1.8.1", "CPU", "f32", {"load_config": "{}"})
with EngineCache(Path(sys.argv[1])).entry(key) as entry:
    print("new" if entry.is_new else "kept", flush=True)
    (entry.folder / "engine.blob").write_bytes(b"engine")
    if sys.stdin.readline() == "die\\n":
        import os
        os._exit(1)
"""


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "engines")


def build(cache: EngineCache, key: EngineKey = KEY, content: bytes = b"engine") -> bool:
    """Use the engine of *key*, made of *content* if it is new; return whether it was."""
    with cache.entry(key) as entry:
        is_new = entry.is_new
        if is_new:
            (entry.folder / "engine.blob").write_bytes(content)
        assert (entry.folder / "engine.blob").read_bytes() == content
    return is_new


def other_process(cache: EngineCache) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(cache.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_engine_is_built_once(cache: EngineCache) -> None:
    assert not cache.folder.exists()
    assert [build(cache), build(cache), build(EngineCache(cache.folder))] == [True, False, False]


def test_notes_are_kept_with_it(cache: EngineCache) -> None:
    with cache.entry(KEY) as entry:
        entry.notes["nodes"] = {"CPUExecutionProvider": 3}
    with cache.entry(KEY) as entry:
        assert entry.notes == {"nodes": {"CPUExecutionProvider": 3}}


@pytest.mark.parametrize("name", [each.name for each in fields(EngineKey)])
def test_whatever_decides_has_its_own_folder(cache: EngineCache, name: str) -> None:
    assert build(cache, KEY, b"one")
    change: dict[str, Any] = {name: {"load_config": "{} "} if name == "options" else "other"}
    other = evolve(KEY, **change)
    assert build(cache, other, b"two")
    assert not build(cache, KEY, b"one")


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_equal_keys_and_no_others_have_equal_digests(
    one: dict[str, str], two: dict[str, str]
) -> None:
    first, second = evolve(KEY, options=one), evolve(KEY, options=two)
    assert (first.digest == second.digest) == (one == two)
    assert evolve(KEY, options=dict(reversed(one.items()))).digest == first.digest


def test_a_build_that_fails_leaves_nothing(cache: EngineCache) -> None:
    with pytest.raises(ZeroDivisionError), cache.entry(KEY) as entry:
        1 / (entry.folder / "half").write_text("")
    assert [path.suffix for path in cache.folder.iterdir()] == [".lock"]
    assert build(cache)


def test_a_kept_engine_outlives_an_error(cache: EngineCache) -> None:
    build(cache)
    with pytest.raises(ZeroDivisionError), cache.entry(KEY):
        raise ZeroDivisionError
    assert not build(cache)


def test_a_process_that_dies_meanwhile_leaves_no_engine(cache: EngineCache) -> None:
    child = other_process(cache)
    assert child.communicate("die\n")[0] == "new\n"
    assert child.returncode == 1
    assert list(cache.folder.rglob("engine.blob"))
    assert build(cache)
    assert not build(cache)


def test_a_second_process_waits_and_does_not_build(cache: EngineCache) -> None:
    first, second = other_process(cache), None
    try:
        assert first.stdout
        assert first.stdout.readline() == "new\n"
        second = other_process(cache)
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.5)
        first.communicate("\n")
        assert second.communicate("\n")[0] == "kept\n"
    finally:
        for each in filter(None, (first, second)):
            each.kill()
            each.wait()


def test_many_may_use_a_kept_one_at_a_time(cache: EngineCache) -> None:
    assert cache.kept(KEY) is None
    assert not cache.folder.exists()
    build(cache)
    with cache.entry(KEY):  # somebody holds it
        entry = cache.kept(KEY)
        assert entry
        assert not entry.is_new
        assert (entry.folder / "engine.blob").read_bytes() == b"engine"
    flip(entry.folder / "engine.blob")
    assert cache.kept(KEY) is None


def flip(blob: Path) -> None:
    blob.write_bytes(b"enginf")


def test_renewed_it_is_new(cache: EngineCache) -> None:
    build(cache)
    with cache.entry(KEY) as entry:
        entry.renew()
        assert entry.is_new
        assert list(entry.folder.iterdir()) == []
        (entry.folder / "engine.blob").write_bytes(b"again!")
    assert not build(cache, KEY, b"again!")


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda blob: blob.write_bytes(b"engin"),
        Path.unlink,
        lambda blob: blob.with_name("more").touch(),
    ],
    ids=["a flipped bit", "cut short", "gone", "a file more"],
)
def test_a_damaged_engine_is_built_anew(
    cache: EngineCache, damage: Callable[[Path], object]
) -> None:
    build(cache)
    damage(next(cache.folder.rglob("engine.blob")))
    assert build(cache)
    assert not build(cache)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"files": 1}',
        '{"files": null, "notes": {}}',
        '{"files": {"engine.blob": []}, "notes": {}}',
        '{"files": {"engine.blob": [1, 2, 3]}, "notes": {}}',
        '{"files": {"engine.blob": {"a": 1, "b": 2}}, "notes": {}}',
    ],
)
def test_an_engine_with_damaged_notes_is_built_anew(cache: EngineCache, text: str) -> None:
    build(cache)
    next(cache.folder.rglob("entry.json")).write_text(text)
    assert build(cache)
    assert not build(cache)


def test_providers_that_go_on_writing_may(cache: EngineCache) -> None:
    with cache.entry(KEY) as entry:
        entry.is_sealed = False
        (entry.folder / "engine.blob").write_bytes(b"engine")
        folder = entry.folder
    (folder / "timing").write_bytes(b"later")
    assert not build(cache)


def test_a_build_that_fails_leaves_the_engine_that_it_was_to_replace(cache: EngineCache) -> None:
    build(cache)

    def replace_it() -> None:
        with cache.entry(KEY) as entry:
            entry.renew()
            (entry.folder / "half").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        replace_it()
    assert not build(cache)


def test_a_process_that_dies_while_it_renews_leaves_no_engine(cache: EngineCache) -> None:
    build(cache)
    code = BUILD.replace("print(", "entry.renew(); print(")
    child = subprocess.run(
        [sys.executable, "-c", code, str(cache.folder)],
        input="die\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.stdout == "new\n"
    assert build(cache)
    assert not build(cache)
    (place,) = (path for path in cache.folder.iterdir() if path.is_dir())
    assert {path.name for path in place.iterdir()} == {"made-by-devicecore", "engine", "entry.json"}


def test_an_engine_of_another_model_is_not_kept(cache: EngineCache) -> None:
    with cache.entry(KEY) as entry:
        (entry.folder / "engine.blob").write_bytes(b"of another file")
        entry.is_right = False
    assert build(cache)


def test_an_engine_that_cannot_be_kept_costs_nobody_a_session(
    cache: EngineCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")  # a disk that is full, which is a fake

    monkeypatch.setattr("devicecore.ort.engine_cache._finish", full)
    assert build(cache)
    assert "is not kept" in caplog.text
    monkeypatch.undo()
    assert build(cache)


CROWD = """\
import random, sys
from pathlib import Path
from attrs import evolve
from devicecore.ort.engine_cache import EngineCache, EngineKey
key = EngineKey("aa", "OpenVINOExecutionProvider", "1.8.1", "CPU", "f32", {})
cache = EngineCache(Path(sys.argv[1]), limit_bytes=2500)
for _ in range(40):
    with cache.entry(evolve(key, model=random.choice("abcdefgh"))) as entry:
        if entry.is_new:
            (entry.folder / "engine.blob").write_bytes(b"x" * 1000)
"""


def test_processes_that_delete_each_others_engines_all_go_on(cache: EngineCache) -> None:
    command = [sys.executable, "-c", CROWD, str(cache.folder)]
    crowd = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=100)[1] for process in crowd] == [""] * 4


def test_a_folder_that_others_can_read_is_closed(cache: EngineCache) -> None:
    cache.folder.mkdir(mode=0o755)
    build(cache)
    assert cache.folder.stat().st_mode & 0o777 == 0o700


def use(cache: EngineCache, name: str, time: int) -> None:
    key = evolve(KEY, model=name)
    build(cache, key, b"x" * 1000)
    os.utime(cache.folder / key.digest / "entry.json", (time, time))


def kept(cache: EngineCache) -> str:
    names = [path.name for path in cache.folder.iterdir() if path.is_dir()]
    return "".join(sorted(name for name in "abcd" if evolve(KEY, model=name).digest in names))


def test_those_unused_for_longest_go_first(cache: EngineCache) -> None:
    for time, name in enumerate("bac"):
        use(cache, name, time)
    small = EngineCache(cache.folder, limit_bytes=4000)
    build(small, evolve(KEY, model="d"), b"x" * 1000)
    assert kept(cache) == "acd"
    assert not build(small, evolve(KEY, model="a"), b"x" * 1000)


def test_the_one_just_built_stays_whatever_its_size(cache: EngineCache) -> None:
    use(cache, "a", 0)
    build(EngineCache(cache.folder, limit_bytes=0), evolve(KEY, model="b"), b"x" * 1000)
    assert kept(cache) == "b"


def test_one_in_use_is_not_deleted(cache: EngineCache) -> None:
    for time, name in enumerate("ab"):
        use(cache, name, time)
    lock = cache.folder / f"{evolve(KEY, model='a').digest}.lock"
    with FileLock(lock).acquire():
        build(EngineCache(cache.folder, limit_bytes=0), evolve(KEY, model="c"), b"x" * 1000)
    assert kept(cache) == "ac"


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has owners and modes")
def test_only_the_owner_may_look(cache: EngineCache) -> None:
    build(cache)
    folders = [cache.folder, *(path for path in cache.folder.rglob("*") if path.is_dir())]
    assert [path.stat().st_mode & 0o777 for path in folders] == [0o700] * 3


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has owners and modes")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_may_write_is_refused(cache: EngineCache, mode: int) -> None:
    cache.folder.mkdir()
    cache.folder.chmod(mode)
    with pytest.raises(EngineCacheError, match="can be written to by others"):
        build(cache)
    assert list(cache.folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown")
def test_a_folder_of_somebody_else_is_refused(cache: EngineCache) -> None:
    cache.folder.mkdir()
    os.chown(cache.folder, 12345, -1)
    with pytest.raises(EngineCacheError, match="belongs to somebody else") as caught:
        build(cache)
    assert caught.value.folder == str(cache.folder)
    assert "cache='none'" in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("folder", ["/proc/devicecore", "/dev/null/devicecore"])
def test_a_folder_that_cannot_be_made_is_one_clear_error(folder: str) -> None:
    with pytest.raises(EngineCacheError, match=f"{folder}.*cannot be used"):
        build(EngineCache(Path(folder)))


def test_the_configuration_says_where_and_how_much(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        build(EngineCache(), evolve(KEY, model=name))
    assert EngineCache().folder == cache_dir / "engines"
    assert kept(EngineCache()) == "ab"
    monkeypatch.setenv("DEVICECORE_CACHE_MIB", "0")
    build(EngineCache(), evolve(KEY, model="c"))
    assert kept(EngineCache()) == "c"
    monkeypatch.setenv("DEVICECORE_CACHE_MIB", "4GB")
    with pytest.raises(ConfigurationError, match="a number of MiB"):
        build(EngineCache(), evolve(KEY, model="d"))
