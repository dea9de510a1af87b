"""`PatchPoint`: an attribute of a module or a class whose function a wrapper can replace."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any, Final

from devicecore.migrate.patching.referrers import namespace_of

ABSENT: Final = object()
"""What a place holds where there is nothing: a class inherits it, or a module gives it if asked."""


class PatchPoint:
    """An attribute, its value before, and the wrapper put there.

    Attributes:
        owner: The module or the class.
        name: The attribute's name.
        before: What was there before, such as a `staticmethod` object; `ABSENT` if nothing.
        ours: What we put there last; *before* as long as that is nothing.
        is_users: Whether it is a name that a module has taken the function under, for its own use.
    """

    __slots__ = ("_namespace", "_next", "before", "is_users", "name", "ours", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        is_class = isinstance(owner, type)
        if not is_class and not isinstance(owner, ModuleType):
            msg = f"{owner!r} is neither a module nor a class"
            raise TypeError(msg)
        self.owner: Final[Any] = owner
        self.name: Final = name
        self._namespace: Final[Any] = vars(owner) if is_class else namespace_of(owner)
        self.before: Any = self.now
        self.ours: Any = self.before
        self.is_users: bool = False
        self._next: Any = self.before  # what an interrupt may have let us put there, or not

    @property
    def key(self) -> tuple[int, str]:
        """What distinguishes this attribute from all others, as long as the owner lives."""
        # A class gives another view of its dict each time.
        return (id(self.owner if self.is_in_class else self._namespace), self.name)

    @property
    def is_in_class(self) -> bool:
        """Whether the owner is a class."""
        return isinstance(self.owner, type)

    @property
    def now(self) -> Any:
        """What is there now; `ABSENT` if nothing."""
        return self._namespace.get(self.name, ABSENT)

    @property
    def is_ours(self) -> bool:
        """Whether nobody else has put anything there since we did."""
        now = self.now
        return now is self.ours or now is self._next

    @property
    def home(self) -> str:
        """The name of the module that it is in."""
        return str(self.owner.__module__ if self.is_in_class else self._namespace.get("__name__"))

    def inherited(self) -> Any:
        """Return what the owner has there if its dict has nothing, or `ABSENT`.

        For a class that is what a base has, for a module what its ``__getattr__`` gives.
        """
        if not self.is_in_class:
            return getattr(self.owner, self.name, ABSENT)
        bases = self.owner.__mro__[1:]
        having = (base for base in bases if self.name in vars(base))
        return next((vars(base)[self.name] for base in having), ABSENT)

    def function(self) -> Any:
        """Return the function that is there now, or is inherited, itself.

        Raises:
            AttributeError: Nothing is there.
            TypeError: It is a class, or cannot be called.
        """
        found = self.now if self.now is not ABSENT else self.inherited()
        if found is ABSENT:
            msg = f"there is no {self}"
            raise AttributeError(msg)
        found = _itself(found)
        if isinstance(found, type) or not callable(found):
            what = "is a class; patch its methods" if isinstance(found, type) else "is no function"
            msg = f"{self} {what}"
            raise TypeError(msg)
        return found

    def inherited_function(self, otherwise: Any) -> Any:
        """Return the function that is inherited, or *otherwise* if nothing is any more."""
        found = self.inherited()
        return otherwise if found is ABSENT else _itself(found)

    def put(self, function: Any) -> None:
        """Put *function* there, as what was there before is: a static method, a class method.

        Raises:
            TypeError: The owner is a class that cannot be changed.
        """
        like = self.inherited() if self.before is ABSENT else self.before
        ours = function
        if isinstance(like, staticmethod | classmethod):
            ours = type(like)(function)
        elif self.is_in_class and not hasattr(type(like), "__get__"):
            ours = staticmethod(function)  # a C function, which becomes no method; ours would
        self._put(ours)

    def put_back(self) -> None:
        """Put what was there before."""
        self._put(self.before)

    def _put(self, value: Any) -> None:
        self._next = value
        self._write(value)
        self.ours = value

    def _write(self, value: Any) -> None:
        if self.is_in_class and value is ABSENT:
            type.__delattr__(self.owner, self.name)
        elif self.is_in_class:
            type.__setattr__(self.owner, self.name, value)
        elif value is ABSENT:
            self._namespace.pop(self.name, None)
        else:
            self._namespace[self.name] = value

    def __str__(self) -> str:
        if self.is_in_class:
            return f"{self.owner.__module__}.{self.owner.__qualname__}.{self.name}"
        return f"{self._namespace.get('__name__')}.{self.name}"


def _itself(found: Any) -> Any:
    return found.__func__ if isinstance(found, staticmethod | classmethod) else found


def describe(value: Any) -> str:
    """Return what *value* is, for a message, without running its code."""
    if value is ABSENT:
        return "nothing"
    if isinstance(value, FunctionType):
        return f"the function {value.__module__}.{value.__qualname__}"
    return f"a {type(value).__name__}"
