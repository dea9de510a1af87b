"""Which frameworks are imported by now, and what a device means to each of them."""

from __future__ import annotations

import sys
import threading
import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.errors import DeviceCoreError, NotLiveError
from devicecore.fork import rearm_after_fork
from devicecore.frameworks import framework, loaded
from devicecore.frameworks.base.lookup import frameworks_with_default
from devicecore.ledger import default_ledger
from devicecore.liveness.probe_result import failure
from devicecore.scope import scope_stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.frameworks.base.adapter import Adapter


class _Loaded:
    """The adapters of what is imported: a tuple that is replaced as a whole."""

    def __init__(self) -> None:
        self.taken: frozenset[str] = frozenset()
        self.adapters: tuple[Adapter, ...] = ()
        self.counted: int = 0
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def take(self, name: str) -> None:
        """Make the adapters of a module that is imported now."""
        module = sys.modules[name]
        with self._lock:
            if name in self.taken:
                return
            made: Sequence[Adapter] = ()
            try:
                if _is_framework(name, module):
                    made = framework(name).adapters(module)
            except Exception as error:  # noqa: BLE001 - a broken framework breaks no scope
                msg = f"no device scope can set the default device of this {name}: {error!r}"
                warnings.warn(msg, RuntimeWarning, stacklevel=4)
            self.adapters = (*self.adapters, *made)
            self.taken |= {name}

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


_loaded = _Loaded()


def adapters() -> tuple[Adapter, ...]:
    """Return the adapters of all frameworks that are imported; the same tuple until one more is.

    `imported` is told of most. One that came in before, or from C, changes how many modules there
    are.
    """
    modules = sys.modules
    if len(modules) != _loaded.counted:
        counted = len(modules)
        for name in frameworks_with_default() - _loaded.taken:
            module = modules.get(name)  # None too where somebody has forbidden its import
            if module is None:
                continue
            if _is_whole(module):
                _loaded.take(name)
            else:
                counted = -1  # so that the next one looks again
        _loaded.counted = counted
    return _loaded.adapters


def _is_framework(name: str, module: Any) -> bool:
    """Return whether a module is the framework, and not the program's own one of that name."""
    if loaded(name) is None:
        return False
    try:
        for path in framework(name).uses:
            attrgetter(path)(module)
    except Exception:  # noqa: BLE001 - a program's own module, which makes its names when asked
        return False
    return True


def _is_whole(module: Any) -> bool:
    """Return whether an import is over: a module is listed from its beginning."""
    spec = getattr(module, "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def imported(name: str) -> None:
    """Apply the open scopes of this thread to a framework whose import has just ended."""
    _loaded.take(name)
    catch_up(scope_stack.here.scopes, adapters())


def catch_up(scopes: scope_stack.ThreadScopes, now: tuple[Adapter, ...]) -> None:
    """Apply the open frames of this thread to the adapters that came since they were entered.

    An import never fails for a scope around it, nor does another scope: what a frame cannot apply
    any more is a warning.
    """
    new = tuple(each for each in now if each not in scopes.adapters)
    scopes.adapters = now
    for frame in scopes.frames:
        more: scope_stack.Saves = []
        try:
            placed = placement(frame.device, frame.owner.frameworks, new)
            apply(placed, more)
            frame.saves += more
        except DeviceCoreError as error:
            scope_stack.put_back(more)
            msg = f"{frame.owner!r} was open when a framework was imported, which cannot follow it"
            warnings.warn(f"{msg}: {error}", RuntimeWarning, stacklevel=3)


@frozen(eq=False)
class Placement:
    """What entering a scope does.

    Attributes:
        device: The device that becomes current.
        adapters: The frameworks that were asked.
        places: For those that can use the device, their own object for it.
        refused: For those that cannot, why.
        modules: How many modules there were: a plug-in may bring what was refused.
    """

    device: Device
    adapters: tuple[Adapter, ...]
    places: tuple[tuple[Adapter, Any], ...]
    refused: tuple[tuple[Adapter, str], ...] = ()
    modules: int = 0


def placement(
    device: Device, frameworks: frozenset[str] | None, asked: tuple[Adapter, ...]
) -> Placement:
    """Ask each adapter what *device* is to it.

    Raises:
        NotLiveError: A framework that *frameworks* names cannot use the device.
    """
    places = []
    refused = []
    for adapter in asked:
        if frameworks is not None and not frameworks & adapter.frameworks:
            continue
        try:
            if frameworks is not None and not device.is_local:
                raise adapter.refusal(device, "it is not in this process")
            place = _place_of(adapter, device)
        except NotLiveError as error:
            if frameworks is not None:
                raise
            refused.append((adapter, error.reason))
        else:
            if place is not None:
                places.append((adapter, place))
    return Placement(device, asked, tuple(places), tuple(refused), len(sys.modules))


def _place_of(adapter: Adapter, device: Device) -> Any:
    """Return what *device* is to a framework, whose own faults are reasons why it is nothing.

    Raises:
        NotLiveError: The framework cannot use it.
    """
    try:
        return adapter.place_of(device)
    except DeviceCoreError:
        raise
    except Exception as error:  # a framework that cannot even list its devices
        raise adapter.refusal(device, f"it says {failure(error).reason}") from error


def apply(placed: Placement, saves: scope_stack.Saves) -> None:
    """Set the frameworks as *placed* says.

    Args:
        placed: What entering does.
        saves: What leaving has to put back is added to it; also before an error, or an interrupt.

    Raises:
        FallbackForbiddenError: A framework would keep its default, which the ledger forbids.
        ScopeError: A framework would use another device.
    """
    if placed.refused:
        for adapter, reason in placed.refused:
            default_ledger().record(adapter.title, placed.device.name, "its default", reason)
    enter_all(placed.places, saves)


def enter_all(places: tuple[tuple[Adapter, Any], ...], saves: scope_stack.Saves) -> None:
    """Set each framework to its place.

    Args:
        places: The places.
        saves: What leaving has to put back is added to it; also before an error, or an interrupt.

    Raises:
        ScopeError: A framework would use another device.
    """
    for adapter, place in places:
        saved = adapter.save(place)
        saves.append((adapter, saved))
        adapter.set(place, saved)
