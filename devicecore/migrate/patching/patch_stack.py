"""`PatchStack`: the wrappers around one function, the innermost first."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from devicecore.fork import rearm_after_fork
from devicecore.migrate.patching.binding import ABSENT, PatchPoint, describe
from devicecore.migrate.patching.pickling import ORIGINALS
from devicecore.migrate.patching.referrers import find_bindings
from devicecore.migrate.patching.wraps import wraps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Wrapper(partial[Any]):
    """One wrapper of a function: calling it calls what is below the wrapper now.

    It is a `functools.partial` of the original so that `inspect`, and whatever decorates it, takes
    it for what the original is. A wrapper in a hurry calls ``wrapper.target`` itself.

    Attributes:
        original: The function, past all wrappers.
        target: What is below: the original, or the wrapper of whoever patched it before.
        active: Whether the wrapper is in use. One that is not, and was captured by somebody while
            it was, should do nothing but call the target.
        replacement: The function that is called in place of the original; None once it is not in
            use any more.
        stack: All the wrappers of the function.
    """

    __slots__ = ("active", "original", "replacement", "stack", "target")

    original: Any
    target: Any
    active: bool
    replacement: Any
    stack: PatchStack

    @classmethod
    def on(cls, stack: PatchStack) -> Wrapper:
        """Return a wrapper that is to be put on *stack*."""
        wrapper = cls(stack.original)
        wrapper.stack = stack
        wrapper.original = stack.original
        wrapper.target = stack.top
        wrapper.active = True
        wrapper.replacement = None
        return wrapper

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call what is below."""
        return self.target(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<what is below a wrapper of {describe(self.original)}>"


class PatchStack:
    """One function, the wrappers around it, and the patch points that show the outermost one.

    Attributes:
        original: The function.
        bottom: What the innermost wrapper calls: the original, or what a class inherits now.
        wrappers: The wrappers, the innermost first.
        places: Where the outermost one is.
        lost: Places where others have put something else since.
        retired: Wrappers that are not in use any more, and that somebody may put back somewhere.
        address: The module and the name that lead to the original.
        is_of_class: Whether it is a class's function, and is looked for nowhere else.
    """

    __slots__ = (
        "address",
        "bottom",
        "is_of_class",
        "lost",
        "original",
        "places",
        "retired",
        "wrappers",
    )

    def __init__(self, place: PatchPoint, original: Any, bottom: Any) -> None:
        self.original: Final = original
        self.bottom: Any = bottom
        self.wrappers: list[Wrapper] = []
        self.places: list[PatchPoint] = [place]
        self.lost: list[PatchPoint] = []
        self.retired: WeakSet[Any] = WeakSet()
        self.is_of_class: Final = place.is_in_class
        self.address: tuple[str, str] = (place.home, place.name)

    def give_address(self) -> None:
        """Let the original be pickled while it is patched, and remember where it is at home."""
        original, (home, name) = self.original, self.address
        ORIGINALS.add(original, home, self)
        self.address = ORIGINALS.address_of(original) or (
            getattr(original, "__module__", None) or home,
            getattr(original, "__qualname__", name),
        )

    @property
    def top(self) -> Any:
        """What is to be called."""
        return self.wrappers[-1].replacement if self.wrappers else self.bottom

    def replacements(self) -> list[Any]:
        """Return the wrappers that are in use, and those that were."""
        return [*(wrapper.replacement for wrapper in self.wrappers), *self.retired]

    def connect(self) -> None:
        """Let each wrapper call the one below it, and only the outermost be pickled by its name."""
        below = self.bottom
        for wrapper in self.wrappers:
            wrapper.target = below
            below = wrapper.replacement
            if wrapper is self.wrappers[-1]:
                ORIGINALS.uncover(wrapper.replacement)
            else:
                ORIGINALS.cover(wrapper.replacement)

    def show(self) -> None:
        """Put the outermost wrapper, or what was there before, where nobody else has been since.

        Raises:
            TypeError: A class cannot be changed.
        """
        for place in list(self.places):
            if not place.is_ours:
                self.lose(place)
            elif self.wrappers:
                place.put(self.top)
            elif place.now is not place.before:
                place.put_back()

    def lose(self, place: PatchPoint) -> None:
        """Leave *place* to whoever has put something else there."""
        self.places.remove(place)
        if not place.is_users:  # whoever has taken a name may give it another meaning
            self.lost.append(place)


class PatchStacks:
    """All patched functions of this process: one object, `PATCH_STACKS`.

    Attributes:
        lock: Held while anything is put on or taken off.
    """

    __slots__ = ("__weakref__", "_all", "lock")

    def __init__(self) -> None:
        self._all: list[PatchStack] = []
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self.lock: threading.RLock = threading.RLock()

    def put_on(
        self,
        patches: Iterable[tuple[Any, str, Callable[[Wrapper], Any]]],
        wrappers: list[Wrapper],
        *,
        is_anew: bool = False,
    ) -> None:
        """Put a wrapper on each of some functions; all of them or, on an error, none.

        Args:
            patches: The owner of each, the name of the attribute, and what makes the wrapper.
            wrappers: What is put on is added to it before anything is changed, so that whoever has
                it can take it off after an interrupt.
            is_anew: The functions were made anew by a reload, so nobody is to blame for that.

        Raises:
            AttributeError: There is no such attribute.
            TypeError: It is no function, its class cannot be changed, or the wrapper is no such
                function as that.
            Exception: Making a wrapper failed.
        """
        new: list[Wrapper] = []
        with self.lock:
            try:
                known = _StackIndex(self._all)
                for owner, name, make_wrapper in patches:
                    stack = self._stack_at(PatchPoint(owner, name), known, is_anew=is_anew)
                    wrapper = Wrapper.on(stack)
                    wrappers.append(wrapper)
                    new.append(wrapper)
                    replacement = make_wrapper(wrapper)
                    wraps(replacement, stack.original, stack.address)
                    wrapper.replacement = replacement
                    stack.wrappers.append(wrapper)
                    known.functions[id(wrapper.replacement)] = stack
                stacks = _each_once(wrapper.stack for wrapper in new)
                self._find_places(stacks)
                for stack in stacks:
                    stack.connect()
                    stack.show()
                self._tell_heirs()
            except BaseException:  # an interrupt, too, leaves nothing half done
                self.take_off(new)
                wrappers[:] = [wrapper for wrapper in wrappers if wrapper not in new]
                self._drop_empty()  # also one that no wrapper has come to
                raise

    def take_off(self, wrappers: Sequence[Wrapper]) -> list[str]:
        """Take wrappers off, and return what could not be put back, in words.

        Taken off twice is taken off once, also if the first time was interrupted.
        """
        if not wrappers:
            return []
        with self.lock:
            stacks = _each_once(wrapper.stack for wrapper in wrappers)
            self._find_places(stacks)
            for wrapper in wrappers:
                wrapper.active = False
                if wrapper in wrapper.stack.wrappers:
                    wrapper.stack.wrappers.remove(wrapper)
                if wrapper.replacement is None:
                    continue
                wrapper.stack.retired.add(wrapper.replacement)
                wrapper.target = wrapper.original
                ORIGINALS.cover(wrapper.replacement)
                wrapper.replacement = None  # a cycle, which only a collection frees
            texts = []
            for stack in stacks:
                stack.connect()
                stack.show()
                texts += [
                    f"{place} is left as it is: {describe(place.now)} is there now"
                    for place in stack.lost
                ]
                stack.lost.clear()
            self._drop_empty()
            self._tell_heirs()
        return texts

    def has(self, owner: Any, name: str, wrappers: Iterable[Wrapper]) -> bool:
        """Return whether one of *wrappers* is on the function that is at a place now."""
        place = PatchPoint(owner, name)
        return any(
            each.key == place.key and each.is_ours
            for wrapper in wrappers
            for each in wrapper.stack.places
        )

    def holders(self) -> list[Any]:
        """Return what may hold the originals: the wrappers, and what has been in their places."""
        with self.lock:
            replacements = [
                wrapper.replacement for stack in self._all for wrapper in stack.wrappers
            ]
            return replacements + [place.before for stack in self._all for place in stack.places]

    def _stack_at(self, place: PatchPoint, known: _StackIndex, *, is_anew: bool) -> PatchStack:
        """Return the stack of the function that is at *place*, which now belongs to it."""
        function = place.function()
        for stack in known.stacks_at(place):
            for each in [own for own in stack.places if own.key == place.key]:
                if each.is_ours:
                    return stack
                stack.lose(each)
                if is_anew and each in stack.lost:
                    stack.lost.remove(each)
        below = known.functions.get(id(function))
        if below is not None and not place.is_in_class and not below.is_of_class:
            self._join(below, place)
            known.add_place(below, place)
            return below
        made = PatchStack(place, function if below is None else below.original, function)
        self._all.append(made)
        made.give_address()
        known.add(made)
        return made

    def _join(self, stack: PatchStack, place: PatchPoint) -> None:
        stack.lost = [lost for lost in stack.lost if lost.key != place.key]
        if place.before is not ABSENT:
            place.before = stack.original  # what it would hold if nothing had been patched
        stack.places.append(place)

    def _find_places(self, stacks: Sequence[PatchStack]) -> None:
        """Add the names of all modules that are bound to a function, or to a wrapper of it."""
        by_value: dict[int, PatchStack] = {}
        values: list[Any] = []
        for stack in stacks:
            found = stack.replacements()
            if not stack.is_of_class:
                found.append(stack.original)
            values += found
            by_value |= {id(value): stack for value in found}
        known = {place.key for stack in stacks for place in stack.places}
        for module, name, value in find_bindings(values):
            place = PatchPoint(module, name)
            if place.key not in known and place.now is value:
                known.add(place.key)
                place.is_users = True
                self._join(by_value[id(value)], place)

    def _drop_empty(self) -> None:
        for stack in [each for each in self._all if not each.wrappers]:
            ORIGINALS.discard(stack.original, stack)
            self._all.remove(stack)

    def _tell_heirs(self) -> None:
        """Let the wrappers of inherited methods call what their class inherits now."""
        for stack in self._all:
            for place in stack.places:
                if place.before is ABSENT and place.is_in_class:
                    stack.bottom = place.inherited_function(stack.bottom)
                    stack.connect()


class _StackIndex:
    """Finds patch stacks by function and place, while hundreds of functions are patched.

    Attributes:
        functions: The stack that each function is the original of, or a wrapper in.
    """

    def __init__(self, stacks: Iterable[PatchStack]) -> None:
        self.functions: dict[int, PatchStack] = {}
        self._at: dict[tuple[int, str], list[PatchStack]] = {}
        for stack in stacks:
            self.add(stack)

    def add(self, stack: PatchStack) -> None:
        """Add all that belongs to a stack."""
        for function in (stack.original, *stack.replacements()):
            self.functions.setdefault(id(function), stack)
        for place in stack.places:
            self.add_place(stack, place)

    def add_place(self, stack: PatchStack, place: PatchPoint) -> None:
        """Add one place."""
        self._at.setdefault(place.key, []).append(stack)

    def stacks_at(self, place: PatchPoint) -> Sequence[PatchStack]:
        """Return the stacks that are, or were, at a place."""
        return self._at.get(place.key, ())


def _each_once(stacks: Iterable[PatchStack]) -> list[PatchStack]:
    return list({id(stack): stack for stack in stacks}.values())


PATCH_STACKS: Final = PatchStacks()
