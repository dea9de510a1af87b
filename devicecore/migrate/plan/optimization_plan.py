"""`OptimizationPlan`: says which calls run where; read from a file or a mapping."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn, get_args

from attrs import asdict, evolve, field, fields, frozen

from devicecore.errors import InvalidDeviceNameError, PlanError, shorten
from devicecore.kernels import Exactness
from devicecore.migrate.plan.keys import Key, Segments, first_tie
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import Attribute

Residency = Literal["plain", "scoped"]
KernelLabel = Literal["native", "torch", "triton", "kornia"]
"""Those of `devicecore.cv`, which is not imported for reading a plan: it imports numpy."""

AUTO: Final = "auto"
VERSION: Final = 1
MOST_BYTES: Final = 50_000_000
MAPPING: Final = "the plan"
_ENVELOPE = ("version", "paths", "defaults")
_MOST_DEEP = 3  # the envelope, its paths, the options of one path
_TOO_DEEP = (
    f"its objects lie deeper than {_MOST_DEEP} in each other",
    "a plan is an object of keys, each with a device or with an object of options",
)
_DEVICES = "a device is a name such as 'cuda:0', or 'auto', 'gpu' or 'cpu'"
_SPACE = re.compile(r"[ \t\n\r]*")


def _shown(value: Any) -> str:
    """Return what *value* is, in the words of JSON."""
    if isinstance(value, _Object):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return shorten(repr(value), 80)


def _near(word: str, possible: tuple[str, ...]) -> str:
    """Return a question for what may have been meant by *word*, or an empty text."""
    near = get_close_matches(word, possible, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _one_of(*words: str | None) -> Callable[[Options, Attribute[Any], Any], None]:
    possible = ", ".join(repr(word) for word in words if word)

    def check(_: Options, attribute: Attribute[Any], value: Any) -> None:
        if value not in words:
            reason = f"the option {attribute.name!r} is {_shown(value)}"
            near = _near(value, tuple(filter(None, words))) if isinstance(value, str) else ""
            raise PlanError("", reason, f"it is one of {possible}{near}")

    return check


def _whole(_: Options, attribute: Attribute[Any], value: Any) -> None:
    if type(value) is not int or value < 0:  # True is an int that nobody means as a number
        reason = f"the option {attribute.name!r} is {_shown(value)}"
        raise PlanError("", reason, "it is a whole number, 0 or more")


def _device(_: PlanEntry, __: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str):
        raise PlanError("", f"its device is {_shown(value)}", _DEVICES)
    if value == AUTO:
        return
    try:
        is_empty = DeviceName.parse(value) == DeviceName()
    except InvalidDeviceNameError as error:
        near = f"; did you mean {error.suggestion!r}?" if error.suggestion else ""
        plug_in = "a plug-in's type is written '/device:TYPE:0'"
        reason = f"the device {shorten(value, 80)!r} is none: {error.reason}"
        raise PlanError("", reason, f"{_DEVICES}; {plug_in}{near}") from None
    if is_empty:
        raise PlanError("", f"the device {value!r} says nothing of a device", _DEVICES)


@frozen(cache_hash=True)
class Options:
    """How the calls of one key are migrated.

    Attributes:
        residency: ``"plain"`` where each call returns an ordinary array; ``"scoped"`` where results
            stay on the device until the outermost function that the plan names so has ended. For a
            `DeviceLoader` it means nothing.
        min_pixels: The fewest pixels that are worth another device; smaller calls stay.
        accept: The loosest promise of pixels that is good enough.
        kernel: The only kernels to take; None for any.

    Raises:
        PlanError: A value is none that its option can have.
    """

    residency: Residency = field(default="plain", validator=_one_of(*get_args(Residency)))
    min_pixels: int = field(default=0, validator=_whole)
    accept: Exactness = field(default="exact", validator=_one_of(*get_args(Exactness)))
    kernel: KernelLabel | None = field(
        default=None, validator=_one_of(*get_args(KernelLabel), None)
    )


OPTIONS: Final = tuple(attribute.name for attribute in fields(Options))


@frozen
class PlanEntry:
    """One line of a plan: which calls, and what becomes of them.

    Attributes:
        key: The calls.
        device: Where they run: a device's name, or ``"auto"``.
        options: How they are migrated.
        line: Where the plan's file says so, counted from 1; None where there is no file. It counts
            for nothing when entries are compared.

    Raises:
        PlanError: *device* is none.
    """

    key: Key
    device: str = field(validator=_device)
    options: Options = field(factory=Options)
    line: int | None = field(default=None, eq=False)

    @property
    def is_original(self) -> bool:
        """Whether the calls stay as they are, on the CPU and with no kernel asked for."""
        if self.device == AUTO or self.options.kernel is not None:
            return False
        return DeviceName.parse(self.device).device_type == "CPU"


@frozen
class OptimizationPlan:
    """Which calls of a program shall run on which devices. It is data: nothing is imported for it.

    Attributes:
        entries: What the plan says, in its order.
        source: The plan's file, or a short description of it; counts for nothing in comparisons.

    Raises:
        PlanError: Two keys are equally long and can match the same call.

    Examples:
        >>> plan = OptimizationPlan.load({"Dataset/__getitem__/cv2.resize": "cuda:0"})
        >>> plan.entries[0].device
        'cuda:0'
    """

    entries: tuple[PlanEntry, ...] = ()
    source: str = field(default=MAPPING, eq=False)

    def __attrs_post_init__(self) -> None:
        tie = first_tie(self.entries)
        if tie is not None:
            raise tie_error(*tie, self.source)

    @staticmethod
    def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> OptimizationPlan:
        """Return the plan in a JSON file, or in a mapping of the same form.

        That is an object of keys with a device each, or with an object that has a ``"device"`` and
        options; or ``{"version": 1, "paths": {…}, "defaults": {…}}``, where the paths are such an
        object and the defaults are options for all of them.

        Args:
            source: The file's path, or the mapping.

        Raises:
            PlanError: It is no plan; says why, and on which line.
            OSError: The file cannot be read.
        """
        if isinstance(source, Mapping):
            return OptimizationPlan(_entries(_from_mapping(source), MAPPING), MAPPING)
        name = os.fsdecode(source)
        return OptimizationPlan(_entries(_Reader(_text(name), name).read(), name), name)

    def dump(self) -> dict[str, Any]:
        """Return this plan as an object that JSON can write and `load` makes an equal plan of."""
        paths = {str(entry.key): _dumped(entry) for entry in self.entries}
        return {"version": VERSION, "paths": paths}


def tie_error(first: PlanEntry, second: PlanEntry, path: Segments, plan: str) -> PlanError:
    """Return the error for two entries of which neither wins for the calls of *path*."""
    where = "" if first.line is None else f" on line {first.line}"
    both = f"it and {str(first.key)!r}{where} both match {'/'.join(path)!r}"
    fix = "name one more frame in one of them, or leave one out"
    return PlanError(str(second.key), f"{both}, and neither is longer", fix, plan, second.line)


def _dumped(entry: PlanEntry) -> Any:
    usual = asdict(Options())
    given = asdict(entry.options)
    changed = {name: given[name] for name in OPTIONS if given[name] != usual[name]}
    return {"device": entry.device, **changed} if changed else entry.device


class _Member(NamedTuple):
    name: str
    value: Any
    line: int | None


@frozen
class _Object:
    members: tuple[_Member, ...]

    def get(self, name: str) -> _Member | None:
        return next((member for member in self.members if member.name == name), None)


def _entries(read: _Object, plan: str) -> tuple[PlanEntry, ...]:
    paths, options = read, Options()
    version, inside = read.get("version"), read.get("paths")
    # A function may have either name, but no device is an object or a number.
    if any(member and not isinstance(member.value, str) for member in (version, inside)):
        paths, options = _opened(read, plan)
    return tuple(_entry(member, options, plan) for member in paths.members)


def _opened(envelope: _Object, plan: str) -> tuple[_Object, Options]:
    """Return the paths in *envelope*, and the options that hold for all of them."""
    for member in envelope.members:
        if member.name not in _ENVELOPE:
            fix = f"there are {', '.join(map(repr, _ENVELOPE))}{_near(member.name, _ENVELOPE)}"
            raise PlanError(member.name, "it is no part of a plan", fix, plan, member.line)
        if member.name != "version" and not isinstance(member.value, _Object):
            reason = f"it is {_shown(member.value)}"
            raise PlanError(member.name, reason, "it is an object", plan, member.line)
    version, paths, defaults = map(envelope.get, _ENVELOPE)
    if version is None or paths is None:
        reason = f"there is no {'paths' if version else 'version'!r}"
        fix = 'a plan with options for all is {"version": 1, "paths": {…}, "defaults": {…}}'
        raise PlanError("", reason, fix, plan, envelope.members[0].line)
    if type(version.value) is not int or version.value != VERSION:
        fix = f"this devicecore reads version {VERSION}"
        raise PlanError("version", f"it is {_shown(version.value)}", fix, plan, version.line)
    options = _options(defaults.value, Options(), plan, "defaults") if defaults else Options()
    return paths.value, options


def _entry(member: _Member, defaults: Options, plan: str) -> PlanEntry:
    said, options = member, defaults
    try:
        key = Key.parse(member.name)
        if isinstance(member.value, _Object):
            options = _options(member.value, defaults, plan, member.name, others=("device",))
            said = member.value.get("device") or member
            if said is member:
                raise PlanError("", "it has no 'device'", _DEVICES)  # noqa: TRY301 - gets its place
        return PlanEntry(key, said.value, options, member.line)
    except PlanError as error:
        raise error.at(plan, said.line, member.name) from None


def _options(
    given: _Object, options: Options, plan: str, key: str, others: tuple[str, ...] = ()
) -> Options:
    """Return *options* with those that are given for *key*."""
    possible = (*others, *OPTIONS)
    for member in given.members:
        if member.name in others:
            continue
        if member.name not in OPTIONS:
            shown = repr(shorten(member.name, 80))
            fix = f"there are {', '.join(map(repr, possible))}{_near(member.name, possible)}"
            raise PlanError(key, f"{shown} is no option", fix, plan, member.line)
        try:
            options = evolve(options, **{member.name: member.value})
        except PlanError as error:
            raise error.at(plan, member.line, key) from None
    return options


def _from_mapping(given: Mapping[Any, Any], depth: int = 0) -> _Object:
    """Return *given* in the form in which a file is read, without lines."""
    if depth == _MOST_DEEP:
        raise PlanError("", *_TOO_DEEP, MAPPING)
    members = []
    for name, value in given.items():
        if not isinstance(name, str):
            raise PlanError("", f"the key {_shown(name)} is no text", "keys are texts", MAPPING)
        read = _from_mapping(value, depth + 1) if isinstance(value, Mapping) else value
        members.append(_Member(name, read, None))
    return _Object(tuple(members))


def _text(name: str) -> str:
    """Return the text of the file *name*, if it is one and not too long."""
    with Path(name).open("rb") as file:
        # A pipe has no size, so that no more than is allowed is read in any case.
        is_long = os.fstat(file.fileno()).st_size >= MOST_BYTES
        data = b"" if is_long else file.read(MOST_BYTES)
    if is_long or len(data) == MOST_BYTES:
        fix = "a plan is shorter: it names functions, one short line for each"
        raise PlanError("", f"it has {MOST_BYTES // 1_000_000} MB or more", fix, name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PlanError("", "it is not UTF-8", "save it as UTF-8", name, line) from None


class _Reader:
    """Reads JSON with the lines of keys, which Python's own reader of objects forgets."""

    def __init__(self, text: str, plan: str) -> None:
        self._text = text
        self._plan = plan
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)

    def read(self) -> _Object:
        """Return the only object of the text."""
        value, end = self._value(self._skip(0), 0)
        if not isinstance(value, _Object):
            fix = "a plan is an object of keys with a device each"
            raise PlanError("", f"it is {_shown(value)}", fix, self._plan, self._line(end))
        if (end := self._skip(end)) < len(self._text):
            self._fail(end, "nothing belongs after the end of the plan")
        return value

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        start = self._text[at : at + 1]
        if start == "{":
            if depth == _MOST_DEEP:
                raise PlanError("", *_TOO_DEEP, self._plan, self._line(at))
            return self._object(at + 1, depth + 1)
        if start == "[":
            self._fail(at, "a plan has no lists")
        try:
            return self._decoder.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            self._fail(error.pos, error.msg[0].lower() + error.msg[1:])
        except ValueError:  # a constant, or more digits than Python reads
            self._fail(at, "a number that JSON, or Python, does not have")

    def _object(self, at: int, depth: int) -> tuple[_Object, int]:
        members: dict[str, _Member] = {}
        at = self._skip(at)
        if self._text[at : at + 1] == "}":
            return _Object(()), at + 1
        while True:
            if self._text[at : at + 1] != '"':
                self._fail(at, "a key in double quotes belongs here")
            line = self._line(at)
            name, at = self._value(at, depth)
            if name in members:
                reason = f"it is there twice, on lines {members[name].line} and {line}"
                raise PlanError(name, reason, "leave one out", self._plan, line)
            value, at = self._value(self._after(":", at), depth)
            members[name] = _Member(name, value, line)
            at = self._skip(at)
            if self._text[at : at + 1] == "}":
                return _Object(tuple(members.values())), at + 1
            at = self._after(",", at)

    def _after(self, mark: str, at: int) -> int:
        """Return where the text goes on after *mark*, which must come next."""
        at = self._skip(at)
        if not self._text.startswith(mark, at):
            self._fail(at, f"a {mark!r} belongs here")
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        """Return where the blanks at *at* end."""
        found = _SPACE.match(self._text, at)
        return at if found is None else found.end()

    def _line(self, at: int) -> int:
        return bisect_left(self._ends, at) + 1

    def _fail(self, at: int, what: str) -> NoReturn:
        line = self._line(at)
        column = at - (self._ends[line - 2] if line > 1 else -1)
        raise PlanError("", f"bad JSON at column {column}: {what}", "", self._plan, line)


def _no_constant(_: str) -> NoReturn:
    raise ValueError
