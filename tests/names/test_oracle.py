"""Names answer as TensorFlow's own C++ library and its Python class do.

``tests/data/device_names.jsonl`` holds TensorFlow 2.21's answers. Where ours are different on
purpose, ``tests/data/name_exceptions.jsonl`` says what they are and why; the last test fails for an
exception that is not needed any more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from attrs import evolve

from devicecore.errors import DeviceCoreError, IncompatibleNamesError, InvalidDeviceNameError
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Dialect = Literal["devicecore", "tf", "tf-python"]
Row = dict[str, Any]

DATA = Path(__file__).parents[1] / "data"
DIALECTS: dict[str, Dialect] = {"cc": "tf", "py": "tf-python"}
# TensorFlow reads local names only through functions of their own; ours are in one grammar.
LOCAL_OPERATIONS = {"parse_local", "parse_full_or_local", "canonicalize"}


def rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


# --- what TensorFlow's functions are called here ------------------------------------------------


class NotFullError(ValueError):
    """TensorFlow's function wants a name that sets more parts."""


def _parse(value: str | None, dialect: Dialect) -> DeviceName:
    return DeviceName.parse(value or "", dialect=dialect)


def _task(name: DeviceName) -> DeviceName:
    return evolve(name, device_type=None, index=None)


def _has_task(name: DeviceName) -> bool:
    return None not in (name.job, name.replica, name.task)


def _task_name(name: DeviceName) -> DeviceName:
    if not _has_task(name):
        raise NotFullError
    return _task(name)


def _split(name: DeviceName) -> list[str]:
    if not name.aliases:
        raise NotFullError
    return [str(_task(name)), name.aliases[-1]]


def _canonicalize(value: Any, dialect: Dialect) -> DeviceName:
    base = _parse(value["base"], dialect)
    if not base.is_complete:
        raise NotFullError
    return _parse(value["name"], dialect).fill(base)


def _sort_key(text: str, dialect: Dialect) -> tuple[bool, Any]:
    try:
        return (True, _parse(text, dialect))
    except InvalidDeviceNameError:
        return (False, text)


def _made(value: Row) -> DeviceName:
    fields = dict(value)
    if "device_index" in fields:
        fields["index"] = fields.pop("device_index")
    return DeviceName(**fields)


def _replaced(value: Row, dialect: Dialect) -> DeviceName:
    fields = dict(value["set"])
    if "device_index" in fields:
        fields["index"] = fields.pop("device_index")
    return evolve(_parse(value["spec"], dialect), **fields)


def _stacked(names: Iterable[DeviceName]) -> DeviceName:
    scope = DeviceName()
    for name in names:
        scope = name.fill(scope)
    return scope


def of_one(function: Callable[[DeviceName], Any]) -> Callable[[Any, Dialect], Any]:
    return lambda value, dialect: function(_parse(value, dialect))


def of_two(function: Callable[[DeviceName, DeviceName], Any]) -> Callable[[Any, Dialect], Any]:
    def operation(value: Any, dialect: Dialect) -> Any:
        left, right = value.values() if isinstance(value, dict) else value
        return function(_parse(left, dialect), _parse(right, dialect))

    return operation


OPERATIONS: dict[str, Callable[[Any, Dialect], Any]] = {
    "parse": _parse,
    "parse_local": _parse,
    "parse_full_or_local": _parse,
    "canonical_name": _parse,
    "canonicalize": _canonicalize,
    "local_name": of_one(lambda name: name.local),
    "aliases": of_one(lambda name: list(name.aliases)),
    "split": of_one(_split),
    "task_name": of_one(_task_name),
    "host_cpu": of_one(lambda name: evolve(name, device_type="CPU", index=0)),
    "merge_soft": of_two(lambda target, other: target.merge(other, "soft")),
    "merge_override": of_two(lambda target, other: target.merge(other, "override")),
    "merge_unset": of_two(lambda target, other: target.fill(other)),
    "ensure_spec": of_two(lambda more, less: less.fill(more)),
    "is_subset": of_two(lambda less, more: less.is_specified_by(more)),
    "are_compatible": of_two(lambda left, right: left.matches(right)),
    "is_complete_specification": of_two(
        lambda pattern, name: name.is_complete and pattern.is_specified_by(name)
    ),
    "same_address_space": of_two(
        lambda left, right: _has_task(left) and _task(left) == _task(right)
    ),
    "different_address_space": of_two(lambda left, right: not _task(left).matches(_task(right))),
    "eq": of_two(lambda left, right: left == right),
    "compare_less": lambda value, dialect: (
        _sort_key(value[0], dialect) < _sort_key(value[1], dialect)
    ),
    "sort": lambda value, dialect: sorted(value, key=lambda text: _sort_key(text, dialect)),
    "to_string": lambda value, _: _made(value),
    "replace": _replaced,
    "scope_stack": lambda value, dialect: _stacked(
        _parse(text, dialect) for text in value["outer_to_inner"]
    ),
}
MERGES: dict[str, Callable[[Any, Dialect], Any]] = {
    "cc": of_two(lambda target, other: target.merge(other, "error")),
    "py": of_two(lambda base, other: other.fill(base)),
}

# --- comparing ----------------------------------------------------------------------------------

PARTS = {"type": "device_type", "id": "index"}


def ours(row: Row, dialect: Dialect) -> Any:
    """Return our answer in the oracle's terms: its ``out``, or ``{"error": …}``."""
    operation = MERGES[row["oracle"]] if row["op"] == "merge" else OPERATIONS[row["op"]]
    try:
        answer = operation(row["in"], dialect)
    except IncompatibleNamesError as error:
        return {"error": f"incompatible {error.part}"}
    except (DeviceCoreError, NotFullError, TypeError) as error:
        # An error of ours is also the builtin that Python programs catch.
        return {"error": "TypeError" if isinstance(error, TypeError) else "ValueError"}
    if not isinstance(answer, DeviceName):
        return answer
    if isinstance(row.get("out"), str) or (row["oracle"] == "py" and row["op"] != "parse"):
        return str(answer)
    return {
        "job": answer.job,
        "replica": answer.replica,
        "task": answer.task,
        "type": answer.device_type,
        "index": answer.index,
        "string": str(answer),
    }


def oracles(row: Row) -> Any:
    if not row.get("error"):
        return row["out"]
    kind = row["error_type"]
    if kind.startswith("incompatible_"):
        part = kind.removeprefix("incompatible_")
        return {"error": f"incompatible {PARTS.get(part, part)}"}
    return {"error": "TypeError" if kind == "TypeError" else "ValueError"}


ORACLE = [row for row in rows("device_names.jsonl") if row["op"] != "mgr_trace"]
EXCEPTIONS = rows("name_exceptions.jsonl")


def key(operation: str, oracle: str, dialect: str, value: Any) -> tuple[str, str, str, str]:
    return (operation, oracle, dialect, json.dumps(value, sort_keys=True))


EXPECTED = {key(row["op"], row["oracle"], row["dialect"], row["in"]): row for row in EXCEPTIONS}


def dialects(row: Row) -> tuple[Dialect, ...]:
    """Return the dialects in which a row is a test; our own one parses as the C++ library does."""
    if row["op"] in LOCAL_OPERATIONS:
        return ("devicecore",)
    if row["op"] == "parse" and row["oracle"] == "cc":
        return ("tf", "devicecore")
    return (DIALECTS[row["oracle"]],)


CASES: dict[tuple[str, str, Dialect], list[Row]] = defaultdict(list)
for _row in ORACLE:
    for _dialect in dialects(_row):
        CASES[_row["op"], _row["oracle"], _dialect].append(_row)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_answers_are_the_oracles(case: tuple[str, str, Dialect]) -> None:
    *_, dialect = case
    wrong = {}
    for row in CASES[case]:
        exception = EXPECTED.get(key(row["op"], row["oracle"], dialect, row["in"]))
        expected = exception["ours"] if exception else oracles(row)
        if (answer := ours(row, dialect)) != expected:
            wrong[json.dumps(row["in"])] = (answer, expected)
    assert not wrong


def test_every_row_is_a_test() -> None:
    assert sum(len(cases) for cases in CASES.values()) > len(ORACLE) == 1456
    assert {row["op"] for row in ORACLE} == {*OPERATIONS, "merge"}


def test_where_the_oracles_agree_one_comparison_serves_both() -> None:
    python = {
        row["in"]: oracles(row) for row in ORACLE if (row["op"], row["oracle"]) == ("parse", "py")
    }
    agreed = [row for row in ORACLE if row.get("agree") and row["oracle"] == "cc"]
    assert len(agreed) == 265
    assert all(oracles(row) == python[row["in"]] for row in agreed)


@pytest.mark.parametrize(
    "exception",
    EXCEPTIONS,
    ids=lambda row: f"{row['op']} {row['dialect']} {json.dumps(row['in'])[:60]}",
)
def test_every_exception_is_needed(exception: Row) -> None:
    row = next(
        row
        for row in ORACLE
        if row["op"] == exception["op"]
        and row["oracle"] == exception["oracle"]
        and row["in"] == exception["in"]
    )
    assert exception["dialect"] in dialects(row)
    assert exception["ours"] != oracles(row)
    assert len(exception["reason"].split()) > 3


@pytest.mark.parametrize("dialect", ["devicecore", "tf", "tf-python"])
def test_a_number_beyond_31_bits_is_an_error_in_every_dialect(dialect: Dialect) -> None:
    for part in ("replica", "task", "device:GPU"):
        for number in (2**31, 2**32, 2**63 - 1, 2**64, 10**300):
            with pytest.raises(InvalidDeviceNameError):
                DeviceName.parse(f"/{part}:{number}", dialect=dialect)
        assert str(2**31 - 1) in str(DeviceName.parse(f"/{part}:{2**31 - 1}", dialect=dialect))
