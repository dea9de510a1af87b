"""A folder for each engine that a provider builds, kept from one start to the next.

Engines are programs: the cache is open to its owner alone, and one that others could write to is
refused. An engine serves the model, provider, version, device, precision and options that it was
built for and no others. One whose making was cut short, or whose files changed, is built anew.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from zlib import crc32

from attrs import asdict, define, field, frozen

from devicecore import config
from devicecore.errors import EngineCacheError
from devicecore.trusted_files import is_closed, open_regular, read_json, set_aside, why_untrusted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ENTRY = "entry.json"  # written last: a folder without it was not finished
_MARK = "made-by-devicecore"  # written first: a folder without it is somebody else's
_ENGINE = "engine"
_ASIDE = ".old"
_READ_BYTES = 1 << 20


@frozen
class EngineKey:
    """All that decides whether an engine fits.

    Attributes:
        model: The model's digest.
        provider: The provider's name.
        version: The provider's version, and ONNX Runtime's.
        device: What the engine runs on.
        precision: What it computes in.
        options: All other options of the provider and of the session.
    """

    model: str
    provider: str
    version: str
    device: str
    precision: str
    options: Mapping[str, str] = field(hash=False)

    @property
    def digest(self) -> str:
        """A name for the folder, the same in every process."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:32]


@define
class Entry:
    """The folder of one engine, held by this process.

    Attributes:
        folder: Where the provider keeps its files; absolute.
        is_new: Whether the engine has yet to be built.
        notes: What is kept beside the files; whoever builds the engine fills it.
        is_sealed: Whether the files stay as they are once the engine is built.
        is_right: Whether a new engine is what its key says; it is deleted otherwise.
    """

    folder: Path
    is_new: bool
    notes: dict[str, Any] = field(factory=dict)
    is_sealed: bool = True
    is_right: bool = True

    def renew(self) -> None:
        """Set the engine aside, so that it is built anew; where that fails, it is there again."""
        for name in (_ENTRY, _ENGINE):
            path = self.folder.with_name(name)
            path.rename(path.with_name(f"{name}{_ASIDE}"))
        self.folder.mkdir(mode=0o700)
        self.is_new = True
        self.notes = {}


class EngineCache:
    """Engines in one folder, for all processes of this user.

    Args:
        folder: Where; None for ``engines`` in the cache folder of the configuration.
        limit_bytes: When they take more, those that were not used for longest are deleted; None for
            the limit of the configuration.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes

    @property
    def folder(self) -> Path:
        """Where the engines are kept; made when the first one is.

        Raises:
            EngineCacheError: This user has no folder for caches.
        """
        if self._folder is not None:
            return self._folder.absolute()
        root = config.load().cache_dir
        if root is None:
            raise EngineCacheError("none", "is missing: this user has no home")
        return root.absolute() / "engines"

    def kept(self, key: EngineKey) -> Entry | None:
        """Return the entry of *key* if its engine is there; any number of processes may use it.

        Raises:
            EngineCacheError: The folder cannot be used, or is not safe to use.
        """
        root = self.folder
        if not root.exists():
            return None
        if reason := why_unusable(root):
            raise EngineCacheError(str(root), reason)
        with _as_cache_error(root):
            return _kept(root / key.digest)

    @contextmanager
    def entry(self, key: EngineKey) -> Iterator[Entry]:
        """Hold the entry of *key* for a while; another process that wants to do so waits.

        A new one is kept when the block ends without an error, and deleted otherwise.

        Raises:
            EngineCacheError: The folder cannot be used, or is not safe to use.
        """
        from filelock import FileLock  # late: only where an engine is kept

        root = self._usable_folder()
        place = root / key.digest
        lock_file = place.with_suffix(".lock")
        lock = FileLock(lock_file)
        with _as_cache_error(root):
            if lock_file.is_symlink() or not lock_file.is_file():
                set_aside(lock_file)
            lock.acquire()
        try:
            with _as_cache_error(root):
                entry = _opened(place)
            with ExitStack() as undo:  # after an interrupt too: half an engine must not stay
                undo.callback(_give_up, entry, place)
                yield entry
                undo.pop_all()
            if entry.is_new:
                self._keep(entry, place, key)
        finally:
            lock.release()

    def _keep(self, entry: Entry, place: Path, key: EngineKey) -> None:
        """Keep a new engine; whoever built it has it in any case, so nothing fails here."""
        if not entry.is_right:
            _give_up(entry, place)
            return
        try:
            _finish(entry, place, key)
            self._make_room(place.parent, keep=place)
        except OSError as error:  # such as a full disk
            import logging  # late: it costs a third of the import budget

            _give_up(entry, place)
            log = logging.getLogger("devicecore")
            log.warning("the engine of %s is not kept: %s", key.provider, error)

    def _usable_folder(self) -> Path:
        folder = self.folder
        with _as_cache_error(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if reason := why_unusable(folder):
                raise EngineCacheError(str(folder), reason)
            folder.chmod(0o700)  # somebody else may have made it
        return folder

    def _make_room(self, root: Path, keep: Path) -> None:
        from filelock import FileLock, Timeout

        limit = config.load().cache_bytes if self._limit_bytes is None else self._limit_bytes
        sizes = {place: _size(place) for place in root.iterdir() if _is_own(place)}
        too_much = sum(sizes.values()) - limit
        for place in sorted(sizes, key=_last_use):
            if too_much <= 0:
                return
            if place == keep:
                continue
            with (
                suppress(Timeout, OSError),
                FileLock(place.with_suffix(".lock")).acquire(timeout=0),
            ):
                _remove(place)
                too_much -= sizes[place]


def why_unusable(folder: Path) -> str:
    """Return why nothing can be kept in *folder*, or an empty string; it need not exist yet."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        return "is no folder" if nearest == folder else f"lies below {nearest}, a file"
    if nearest == folder and (reason := why_untrusted(folder)):
        return reason
    if not os.access(nearest, os.W_OK | os.X_OK):
        return "cannot be written to"
    return ""


def _kept(place: Path) -> Entry | None:
    notes = _read(place)
    if notes is None:
        return None
    with suppress(FileNotFoundError):  # another process makes room at this moment
        os.utime(place / _ENTRY)  # when it was used last
    return Entry(place / _ENGINE, is_new=False, notes=notes)


def _opened(place: Path) -> Entry:
    if kept := _kept(place):
        return kept
    if _is_own(place):
        _remove(place)
    set_aside(place)
    place.mkdir(mode=0o700)
    (place / _MARK).touch(mode=0o600)
    (place / _ENGINE).mkdir(mode=0o700)
    return Entry(place / _ENGINE, is_new=True)


@contextmanager
def _as_cache_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except EngineCacheError:
        raise
    except OSError as error:
        raise EngineCacheError(str(folder), f"cannot be used ({error.strerror})") from error


def _finish(entry: Entry, place: Path, key: EngineKey) -> None:
    for path in _files(entry.folder):  # a mask may let the group write
        path.chmod(path.stat().st_mode & 0o755)
    files = _checksums(entry.folder) if entry.is_sealed else {}
    text = json.dumps({"key": asdict(key), "files": files, "notes": entry.notes}, indent=1)
    part = place / f"{_ENTRY}.part"
    _remove(part)
    part.touch(mode=0o600)
    part.write_text(text, encoding="utf-8")
    part.replace(place / _ENTRY)
    for name in (_ENTRY, _ENGINE):
        _remove(place / f"{name}{_ASIDE}")


def _read(place: Path) -> dict[str, Any] | None:
    """Return the notes of a finished engine whose files are as they were, else None."""
    try:
        if not (_is_closed(place) and _is_closed(place / _ENGINE)):
            return None
        kept = read_json(place / _ENTRY)
        files, notes = kept["files"], kept["notes"]
        is_readable = isinstance(notes, dict) and isinstance(files, dict)
        is_whole = is_readable and _is_unchanged(place / _ENGINE, files)
    except (OSError, KeyError, TypeError, ValueError):
        return None
    return notes if is_whole else None


def _is_unchanged(folder: Path, files: dict[str, list[int]]) -> bool:
    """Return whether *folder* holds *files* as they were; none were kept of an unsealed engine."""
    if not files:
        return True
    if not all(is_closed(path.lstat()) and not path.is_symlink() for path in _files(folder)):
        return False
    sizes = {_name(folder, path): path.stat().st_size for path in _files(folder)}
    if sizes != {name: size for name, (size, _) in files.items()}:
        return False
    # Providers check their files little: a flipped bit gives wrong numbers and no error.
    return all(_checksum(folder / name) == value for name, (_, value) in files.items())


def _checksums(folder: Path) -> dict[str, list[int]]:
    """Return size and checksum of each file in *folder*."""
    return {_name(folder, path): [path.stat().st_size, _checksum(path)] for path in _files(folder)}


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _checksum(path: Path) -> int:
    value = 0
    with open_regular(path) as file:
        while chunk := file.read(_READ_BYTES):
            value = crc32(chunk, value)
    return value


def _size(place: Path) -> int:
    """Return what *place* takes, in bytes; another process may be deleting it."""
    total = 0
    with suppress(OSError):
        for path in place.rglob("*"):
            with suppress(OSError):
                facts = path.lstat()
                total += facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return total


def _last_use(place: Path) -> float:
    try:
        return (place / _ENTRY).stat().st_mtime
    except OSError:  # never finished
        return 0.0


def _give_up(entry: Entry, place: Path) -> None:
    """Delete a new engine; the one that it was to replace is there again."""
    if not entry.is_new:
        return
    old = [place / f"{name}{_ASIDE}" for name in (_ENGINE, _ENTRY)]
    if not old[1].exists():
        _remove(place)
        return
    _remove(entry.folder)
    for path in old:
        path.rename(path.with_suffix(""))


def _is_own(place: Path) -> bool:
    """Return whether *place* is a folder that this cache made."""
    return not place.is_symlink() and (place / _MARK).is_file()


def _is_closed(folder: Path) -> bool:
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and is_closed(facts)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
