"""`device_scope`: makes a device the current one, for a block or a function."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, cast

from devicecore.device import Device
from devicecore.errors import DeviceError, ScopeError, UnknownDeviceError
from devicecore.frameworks import checked_frameworks
from devicecore.ledger import default_ledger
from devicecore.scope import scope_stack
from devicecore.scope.adapters import Placement, adapters, apply, catch_up, placement
from devicecore.scope.decorator import Decorator
from devicecore.scope.device_lookup import CachedPlacement, is_still_true, look
from devicecore.scope.generator_steps import Ends, Step
from devicecore.scope.imports import watch_imports
from devicecore.scope.interrupts import always_left
from devicecore.scope.parse_device import read
from devicecore.scope.scope_stack import (
    ENDED,
    FORKED,
    OUTSIDE,
    Frame,
    entered_so_far,
    here,
    innermost,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Iterable
    from types import TracebackType

    from devicecore.frameworks.base.adapter import Adapter
    from devicecore.names import DeviceName


class _Left:
    """What was done already: nothing is to be waited for, so that no interrupt comes between."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


# An `AsyncExitStack` declares that it takes coroutines, and only awaits them.
_LEFT = cast("Coroutine[Any, Any, None]", _Left())
_innermost = innermost.get
_set_innermost = innermost.set
_BESIDE = "two tasks hold scopes in one thread, across an await"


class device_scope(Decorator):  # noqa: N801 - used as a function is
    """Makes a device the current one, inside a ``with`` block or a decorated function.

    The default device of torch, JAX, TensorFlow, Paddle and CuPy follows, where they are imported
    already or are imported inside. Arrays that are there already do not move.

    The name is read when the scope is made, the device is looked for when it is entered: a
    decorated function can be imported where its device does not exist. One scope may be used again,
    also inside itself and from several threads; it can be pickled if its device is given by name.
    `PlaceEnv` is another name of it. A ``contextlib.ExitStack`` that goes unclosed leaves it.

    Args:
        device: The name of a device, a `Device`, a `DeviceName`, the index of a GPU, or the object
            that torch, JAX, TensorFlow, Paddle or CuPy have for a device. Without an index it is
            the device of that type in a scope around, else the one that its framework has made
            current, else 0.
        frameworks: Whose default device follows: any of ``"torch"``, ``"jax"``, ``"tensorflow"``,
            ``"paddle"`` and ``"cupy"``, in any case; None for all. One that is named here has to be
            able to use the device; any other one that cannot keeps its default, and the ledger says
            so.
        fallback: What to take where *device* does not work, which the ledger then says; None to
            raise.
        strict: Raise, instead of warning once, where a ``with`` block is held across an ``await``
            beside another task's: frameworks know only threads, so one of the two would compute on
            the other's device, also after its own block. A decorated coroutine has no such trouble.

    Raises:
        InvalidDeviceNameError: *device* or *fallback* is not a device name.
        TypeError: It is nothing that names a device.
        ValueError: A framework is none of those.

    Examples:
        >>> from devicecore import current_device
        >>> with device_scope("cpu:0"):
        ...     str(current_device().parsed_name.local)
        '/device:CPU:0'
    """

    __slots__ = ("_fallback", "_found", "_frameworks", "_strict", "_wanted")

    def __init__(
        self,
        device: Any,
        *,
        frameworks: str | Iterable[str] | None = None,
        fallback: Any = None,
        strict: bool = False,
    ) -> None:
        self._wanted: DeviceName | Device = read(device)
        self._frameworks = _names(frameworks)
        self._fallback: DeviceName | Device | None = None if fallback is None else read(fallback)
        self._strict = strict
        # What the last entry found, which the next one can use as long as it is still true.
        self._found: CachedPlacement | None = None

    def __enter__(self, held: bool = True) -> Device:
        """Make the device the current one, and return it.

        Raises:
            NotLiveError: Its type does not work here, or not for a framework that was named.
            UnknownDeviceError: There is no such device.
            DeviceGoneError: It was closed, removed or lost.
            ScopeError: A framework would compute on another device.
            FallbackForbiddenError: The ledger does not allow the fallback.
        """
        scopes = here.scopes
        around = _innermost()
        while around.thread <= ENDED and around is not OUTSIDE:
            around = around.parent or OUTSIDE
        now = adapters()
        if now is not scopes.adapters:
            catch_up(scopes, now)
        found = self._found
        if (
            found is None
            or found.adapters is not now
            or found.device.gone
            or not (
                found.is_fixed
                or (around is OUTSIDE and found.is_fixed_outside)
                or is_still_true(found, around, now)
            )
        ):
            found = self._find(around, now)
        device = found.device
        frames = scopes.frames
        if frames and frames[-1] is not around and held:
            self._look_beside(frames[-1], around, device.name)
        frame = Frame(device, around, self, scopes.ident, [])
        try:
            frames.append(frame)  # from here on there is something to be left, whatever comes
            _set_innermost(frame)
            if found.places or found.refused:
                apply(found, frame.saves)
        except BaseException as error:
            if frame in frames:
                scope_stack.leave(scopes, frame, error)
            raise
        return device

    def entered_so_far(self) -> Any:
        """Return what says which scopes are open in this thread, for an interrupt."""
        return entered_so_far()

    def leave_after(self, entries: Any) -> None:
        """Leave this scope if it was entered since, and an interrupt kept it open.

        Args:
            entries: What `entered_so_far` has returned.
        """
        scopes, last = entries
        if scopes is not here.scopes:
            return
        for frame in reversed(scopes.frames):
            if frame is last:
                return
            if frame.owner is self:
                scope_stack.leave(scopes, frame, None)
                return

    @always_left
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Put back what was there before, also what was set inside by other means.

        Raises:
            ScopeError: This thread, or this task, is not the one that entered.
        """
        frame = _innermost()
        scopes = here.scopes
        frames = scopes.frames
        if frames and frames[-1] is frame and frame.owner is self:  # in order, as nearly always
            if frame.saves:
                try:
                    scope_stack.restore(frame, (), error)
                except Exception:  # a framework refused to go back; the frame is left all the same
                    scope_stack.leave(scopes, frame, None)
                    raise
            frame.thread = ENDED
            _set_innermost(frame.parent or OUTSIDE)
            frames.pop()
        elif found := self._entered(frame, scopes):
            scope_stack.leave(scopes, found, error)

    async def __aenter__(self) -> Device:
        """Do what ``with`` does."""
        return self.__enter__()

    @always_left
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Coroutine[Any, Any, None]:
        """Do what ``with`` does, at once."""
        self.__exit__(kind, error, traceback)
        return _LEFT

    def for_steps(self, goes_on_after: Ends) -> Step:
        """Return what the steps of one call of a decorated function enter."""
        return Step(self, goes_on_after)

    @property
    def frameworks(self) -> frozenset[str] | None:
        """The frameworks whose default device follows; None for all."""
        return self._frameworks

    def at(self, device: Device) -> device_scope:
        """Return a scope of *device* that is otherwise like this one."""
        return device_scope(device, frameworks=self._frameworks, strict=self._strict)

    # --- which device -------------------------------------------------------------------------

    def placement_of(self, device: Device, now: tuple[Adapter, ...]) -> Placement:
        """Return what entering again does, where *device* was found.

        Raises:
            NotLiveError: A framework that was named cannot use it any more.
        """
        found = self._found
        if found is not None and found.device is device and found.adapters is now:
            return found
        return placement(device, self._frameworks, now)

    def _find(self, around: Frame, now: tuple[Adapter, ...]) -> CachedPlacement:
        """Look for the device, or for the one to fall back to."""
        watch_imports()
        try:
            found = look(self._wanted, self._frameworks, around, now)
        except (DeviceError, UnknownDeviceError) as error:
            if self._fallback is None:
                raise
            found = look(self._fallback, self._frameworks, around, now)
            wanted = self._wanted.name if isinstance(self._wanted, Device) else str(self._wanted)
            default_ledger().record("device_scope", wanted, found.device.name, str(error))
            return found
        if found.is_kept:
            self._found = found
        return found

    # --- where it was entered -----------------------------------------------------------------

    def _look_beside(self, other: Frame, around: Frame, name: str) -> None:
        """Warn, or raise, if *other* is held by another task."""
        if any(frame is other for frame in scope_stack.open_around(around)):
            return
        text = (
            f"{other.device.name}, entered in another task, is still open where {name} is "
            "entered; frameworks know one device for each thread, not for each task; "
            "decorate the coroutines with @device_scope(...), or enter no scope across an await"
        )
        if self._strict or (isinstance(other.owner, device_scope) and other.owner._strict):  # noqa: SLF001 - one of us
            raise ScopeError(_BESIDE, text)
        _warn_once(text)

    def _entered(self, frame: Frame | None, scopes: scope_stack.ThreadScopes) -> Frame | None:
        """Return the frame of this scope that is to be left.

        None where nothing is to be put back: the parent of this process had entered it, or it waits
        for the next step of the decorated function that did.
        """
        innermost_frame = frame
        while frame is not None:
            if frame.owner is self and frame.thread == scopes.ident:
                return frame
            if frame.owner is self and frame.thread == FORKED:
                if frame is innermost_frame:
                    innermost.set(frame.parent or OUTSIDE)
                frame.thread = ENDED
                return None
            frame = frame.parent
        for each in reversed(scopes.frames):  # entered in another context, such as a generator's
            if each.owner is self:
                return each
        waiting = [each for each in tuple(scope_stack.suspended) if each.owner is self]
        if len(waiting) == 1:  # with the call that entered it, and is left from outside
            waiting[0].thread = ENDED
            scope_stack.suspended.discard(waiting[0])
            return None
        msg = f"{self!r} is left where it was not entered"
        raise ScopeError(
            msg,
            "a scope belongs to the thread that entered it",
            "decorate the generator or coroutine with the scope, instead of a with block inside",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made, (self._wanted, self._frameworks, self._fallback, self._strict))

    def __repr__(self) -> str:
        return f"device_scope({str(self._wanted)!r})"


def _names(frameworks: str | Iterable[str] | None) -> frozenset[str] | None:
    if frameworks is None:
        return None
    return checked_frameworks([frameworks] if isinstance(frameworks, str) else frameworks)


def _made(
    device: Any, frameworks: frozenset[str] | None, fallback: Any, strict: bool
) -> device_scope:
    return device_scope(device, frameworks=frameworks, fallback=fallback, strict=strict)


_warned: set[str] = set()
_BETWEEN = ("devicecore.scope.", "contextlib")


def _warn_once(text: str) -> None:
    if _BESIDE not in _warned:
        _warned.add(_BESIDE)
        warnings.warn(f"{_BESIDE}; {text}", RuntimeWarning, stacklevel=_level_of_block())


def _level_of_block() -> int:
    """Return how far up, for who calls this, the block is that enters, whatever it enters by."""
    level = 1
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads files
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        level, frame = level + 1, frame.f_back
    return level


PlaceEnv = device_scope
"""The name that Paddle's proposal gave to it."""
