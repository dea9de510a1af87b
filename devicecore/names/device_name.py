"""`DeviceName`: which device is meant, in five parts that may each be unset."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from attrs import evolve, field, frozen

from devicecore.errors import IncompatibleNamesError, InvalidDeviceNameError
from devicecore.names import grammar, tensorflow_grammar
from devicecore.names.types import canonical_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import Attribute

Dialect = Literal["devicecore", "tf", "tf-python"]
Conflicts = Literal["error", "soft", "override"]

_GRAMMARS = {
    "devicecore": grammar.parse,
    "tf": tensorflow_grammar.parse_cc,
    "tf-python": tensorflow_grammar.parse_python,
}

_SURELY_SHORT = grammar.MAX_LENGTH - len("/device:*")

_CONFLICTS = get_args(Conflicts)
_PARTS = ("job", "replica", "task", "device_type", "index")
_Function = TypeVar("_Function", bound="Callable[..., Any]")


def _cached(function: _Function) -> _Function:
    """Cache *function*, bounded since names may come from a network, and keep its signature."""
    return cast("_Function", lru_cache(maxsize=4096)(function))


def _unset_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def _optional_type(value: Any) -> Any:
    return canonical_type(value) if isinstance(value, str) else value


def _word(_: DeviceName, attribute: Attribute[Any], value: Any) -> None:
    if value is not None and not (isinstance(value, str) and grammar.WORD.fullmatch(value)):
        raise InvalidDeviceNameError(
            str(value), 0, f"a {attribute.name} is a letter, then letters, digits and _"
        )


def _number(_: DeviceName, attribute: Attribute[Any], value: Any) -> None:
    # bool is an int, but True is no index that anybody meant.
    if value is not None and not (type(value) is int and 0 <= value <= grammar.MAX_NUMBER):
        raise InvalidDeviceNameError(
            str(value), 0, f"its {attribute.name} is a whole number from 0 to {grammar.MAX_NUMBER}"
        )


@frozen(order=True)
class DeviceName:
    """Which device is meant: a job, a replica, a task, a device type and an index.

    Any part may be unset, which means "any". Names compare and hash by value; they sort part by
    part, unset parts first. Types that devicecore knows are upper-cased, others keep their case.

    Attributes:
        job: Such as ``"worker"``: a letter, then letters, digits and ``_``.
        replica: A whole number from 0 to 2³¹-1, as are *task* and *index*.
        task: See *replica*.
        device_type: Such as ``"CUDA"``; the same alphabet as *job*.
        index: Which device of its type.

    Examples:
        >>> DeviceName.parse("cuda:1")
        DeviceName(job=None, replica=None, task=None, device_type='CUDA', index=1)
        >>> str(DeviceName(job="worker", task=3, device_type="GPU"))
        '/job:worker/task:3/device:GPU:*'

    Raises:
        InvalidDeviceNameError: A part has characters or a value that no name can have.
    """

    job: str | None = field(default=None, order=_unset_first, validator=_word)
    replica: int | None = field(default=None, order=_unset_first, validator=_number)
    task: int | None = field(default=None, order=_unset_first, validator=_number)
    device_type: str | None = field(
        default=None, order=_unset_first, converter=_optional_type, validator=_word
    )
    index: int | None = field(default=None, order=_unset_first, validator=_number)

    def __attrs_post_init__(self) -> None:
        _bounded(self)

    def __str__(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        if self.replica is not None:
            text += f"/replica:{self.replica}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.device_type is None and self.index is None:
            return text
        device_type = "*" if self.device_type is None else self.device_type
        return f"{text}/device:{device_type}:{'*' if self.index is None else self.index}"

    @staticmethod
    @_cached
    def parse(text: str, *, dialect: Dialect = "devicecore") -> DeviceName:
        """Return the name that *text* writes.

        Accepted are full names with their parts in any order and ``*`` for "any"
        (``/job:worker/replica:0/task:3/device:GPU:2``), local names (``GPU:0``), TensorFlow's
        legacy form (``/gpu:0``), framework style (``cuda``, ``mps:0``) and the names of ONNX
        Runtime's providers.
        Asks no registry; results are cached.

        Args:
            text: The name; an empty text leaves every part unset.
            dialect: ``"tf"`` reads as TensorFlow's C++ library does, ``"tf-python"`` as
                ``tf.DeviceSpec`` does, except that a number beyond 2³¹-1 is always an error. Both
                hold what TensorFlow would hold, even where `DeviceName` itself would refuse it.

        Raises:
            InvalidDeviceNameError: *text* is not a device name; says where and why.
        """
        if not isinstance(text, str):
            raise InvalidDeviceNameError(repr(text), 0, "a name is a str")
        try:
            read = _GRAMMARS[dialect]
        except KeyError:
            msg = f"{dialect!r} is not a dialect; there are {', '.join(_GRAMMARS)}"
            raise ValueError(msg) from None
        name = _unchecked(*read(text))
        # What a short text leaves out is printed: "/gpu" is "/device:GPU:*".
        return _bounded(name) if read is grammar.parse and len(text) > _SURELY_SHORT else name

    @property
    def is_complete(self) -> bool:
        """Whether all five parts are set."""
        return None not in (self.job, self.replica, self.task, self.device_type, self.index)

    @property
    def local(self) -> DeviceName:
        """The name without job, replica and task."""
        return evolve(self, job=None, replica=None, task=None)

    @property
    def aliases(self) -> tuple[str, ...]:
        """All texts that look this device up, canonical first; none for a partly unset device.

        With job, replica and task these are the full name, TensorFlow's legacy form, the local name
        and its short form; without them the last two.
        """
        if self.device_type is None or self.index is None:
            return ()
        short = f"{self.device_type}:{self.index}"
        local = (f"/device:{short}", short)
        if not self.is_complete:
            return local
        task = f"/job:{self.job}/replica:{self.replica}/task:{self.task}"
        return (f"{task}/device:{short}", f"{task}/{self.device_type.lower()}:{self.index}", *local)

    def matches(self, pattern: DeviceName | str) -> bool:
        """Return whether no part is set to different values here and in *pattern*.

        Raises:
            InvalidDeviceNameError: *pattern* is no name, nor a text that writes one.
        """
        return not any(
            mine is not None and theirs is not None and mine != theirs
            for mine, theirs in zip(_parts(self), _parts(pattern), strict=True)
        )

    def is_specified_by(self, other: DeviceName | str) -> bool:
        """Return whether *other* sets every part that is set here, to the same value.

        Raises:
            InvalidDeviceNameError: *other* is no name, nor a text that writes one.
        """
        return all(
            mine is None or mine == theirs
            for mine, theirs in zip(_parts(self), _parts(other), strict=True)
        )

    def merge(self, other: DeviceName | str, conflicts: Conflicts = "error") -> DeviceName:
        """Return the name that both describe.

        Args:
            other: The name, or the text of the name, to merge into this one.
            conflicts: What to do where both set the type or the index: ``"error"`` raises;
                ``"soft"`` unsets the index, or type and index where the types differ;
                ``"override"`` takes those of *other*.

        Raises:
            IncompatibleNamesError: The names differ in job, replica or task, or, with
                ``conflicts="error"``, in type or index.
            InvalidDeviceNameError: *other* is no name; together they have more than 256 characters.
            ValueError: *conflicts* is none of these.
        """
        if conflicts not in _CONFLICTS:
            msg = f"conflicts is {conflicts!r}; it can be {', '.join(map(repr, _CONFLICTS))}"
            raise ValueError(msg)
        other = _as_name(other)
        for part in _PARTS if conflicts == "error" else _PARTS[:3]:
            mine, theirs = getattr(self, part), getattr(other, part)
            if mine is not None and theirs is not None and mine != theirs:
                raise IncompatibleNamesError(part, mine, theirs)
        if conflicts == "override":
            return other.fill(self)
        merged = self.fill(other)
        if other.device_type not in (None, merged.device_type):
            return evolve(merged, device_type=None, index=None)
        if other.index not in (None, merged.index):
            return evolve(merged, index=None)
        return merged

    def fill(self, other: DeviceName | str) -> DeviceName:
        """Return this name with its unset parts taken from *other*, a name or its text.

        Raises:
            InvalidDeviceNameError: *other* is no name; together they have more than 256 characters.
        """
        other = _as_name(other)
        return _bounded(
            _unchecked(
                other.job if self.job is None else self.job,
                other.replica if self.replica is None else self.replica,
                other.task if self.task is None else self.task,
                other.device_type if self.device_type is None else self.device_type,
                other.index if self.index is None else self.index,
            )
        )

    def with_index(self, index: int | None) -> DeviceName:
        """Return this name with another index.

        Raises:
            InvalidDeviceNameError: *index* is not a whole number from 0 to 2³¹-1.
        """
        return evolve(self, index=index)


def _bounded(name: DeviceName) -> DeviceName:
    """Return *name* if its text can be parsed back."""
    if len(text := str(name)) > grammar.MAX_LENGTH:
        raise InvalidDeviceNameError(
            text, grammar.MAX_LENGTH, f"longer than {grammar.MAX_LENGTH} characters"
        )
    return name


def _as_name(given: DeviceName | str) -> DeviceName:
    return given if isinstance(given, DeviceName) else DeviceName.parse(given)


def _parts(given: DeviceName | str) -> tuple[str | int | None, ...]:
    name = _as_name(given)
    return (name.job, name.replica, name.task, name.device_type, name.index)


# The slots themselves: a frozen class refuses assignment.
_SET_JOB, _SET_REPLICA, _SET_TASK, _SET_TYPE, _SET_INDEX = (
    getattr(DeviceName, part).__set__ for part in _PARTS
)


def _unchecked(
    job: str | None,
    replica: int | None,
    task: int | None,
    device_type: str | None,
    index: int | None,
) -> DeviceName:
    """Build a name from parts that a grammar has checked, or that TensorFlow would hold."""
    name = DeviceName.__new__(DeviceName)
    _SET_JOB(name, job)
    _SET_REPLICA(name, replica)
    _SET_TASK(name, task)
    _SET_TYPE(name, device_type)
    _SET_INDEX(name, index)
    return name
