"""Laws that every device name keeps, tried on names and texts that hypothesis makes up."""

from __future__ import annotations

import pickle
from functools import reduce
from string import ascii_letters, digits
from typing import Literal, get_args

import pytest
from attrs import evolve
from hypothesis import assume, example, given
from hypothesis import strategies as st

from devicecore.errors import IncompatibleNamesError, InvalidDeviceNameError
from devicecore.names import DEVICE_CLASSES, DEVICE_TYPES, PROVIDER_TYPES, DeviceName

Dialect = Literal["devicecore", "tf", "tf-python"]
Conflicts = Literal["error", "soft", "override"]

ALPHABET = ascii_letters + digits + "_"
words = st.one_of(
    st.builds(str.__add__, st.sampled_from(ascii_letters), st.text(ALPHABET, max_size=12)),
    # Names may be long, but not longer than 256 characters in all.
    st.builds(str.__mul__, st.sampled_from(ascii_letters), st.integers(1, 250)),
)
types = st.sampled_from([*DEVICE_TYPES, *DEVICE_CLASSES, "MyNPU", "d2"]) | words
numbers = st.integers(0, 3) | st.integers(0, 2**31 - 1)


@st.composite
def names(draw: st.DrawFn) -> DeviceName:
    maybe = st.none()
    try:
        return DeviceName(
            job=draw(maybe | words),
            replica=draw(maybe | numbers),
            task=draw(maybe | numbers),
            device_type=draw(maybe | types),
            index=draw(maybe | numbers),
        )
    except InvalidDeviceNameError as error:
        assume("longer" not in error.reason)
        raise


pieces = st.one_of(
    st.sampled_from(
        [
            *("/", ":", "*", "//", " ", "0", "-1", "\u0663", "\u00e9", "\0", "\n"),
            *("/job:", "/replica:", "/task:", "/device:", "/gpu:", "job", "GPU", "cuda"),
            *PROVIDER_TYPES,
        ]
    ),
    words,
    numbers.map(str),
    st.text(max_size=3),
)
texts = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=300)


@given(names())
def test_a_name_is_read_back_from_its_text(name: DeviceName) -> None:
    assert DeviceName.parse(str(name)) == name


def read(text: str, dialect: Dialect) -> DeviceName | InvalidDeviceNameError:
    try:
        return DeviceName.parse(text, dialect=dialect)
    except InvalidDeviceNameError as error:
        return error


@given(texts)
@example("/device:CPU:*")
@example("/device:*:3")
@example("/device:" + "X" * 248)
@example("/gpu/job:" + "a" * 247)
def test_what_can_be_read_can_be_read_back(text: str) -> None:
    found = read(text, "devicecore")
    if isinstance(found, InvalidDeviceNameError):
        assert 0 <= found.position <= len(found.text)
        assert found.reason
        if found.suggestion:
            DeviceName.parse(found.suggestion)
    else:
        assert DeviceName.parse(str(found)) == found
        assert evolve(found) == found  # the constructor accepts its parts, too


@given(texts, st.sampled_from(["tf", "tf-python"]))
@example("/task:" + "9" * 5000, "tf-python")
@example("/device:a:b:c/job", "tf-python")
def test_tensorflows_dialects_read_or_say_where(text: str, dialect: Dialect) -> None:
    found = read(text, dialect)
    if isinstance(found, InvalidDeviceNameError):
        assert 0 <= found.position <= len(text)
        assert found.reason


@pytest.mark.parametrize("dialect", ["devicecore", "tf", "tf-python"])
@pytest.mark.parametrize("unit", ["/", "/job:a", "/device:", ":", "*", "a", "9", " ", "/gpu", "a:"])
def test_a_huge_text_is_refused_at_once(unit: str, dialect: Dialect) -> None:
    # A grammar that tried alternatives would never come to an end here.
    assert isinstance(read(unit * 200_000, dialect), (DeviceName, InvalidDeviceNameError))


@given(names())
def test_a_name_pickles(name: DeviceName) -> None:
    copy = pickle.loads(pickle.dumps(name))
    assert copy == name
    assert hash(copy) == hash(name)


@given(names(), names(), names())
def test_the_order_is_total(left: DeviceName, middle: DeviceName, right: DeviceName) -> None:
    assert (left < middle) + (left == middle) + (left > middle) == 1
    assert (left <= middle) == (not left > middle)
    first, second, third = sorted([left, middle, right])
    assert first <= second <= third
    assert first <= third


@given(names(), names())
def test_unset_parts_sort_first(left: DeviceName, right: DeviceName) -> None:
    if left.is_specified_by(right):
        assert left <= right


def fits(*parts: DeviceName) -> bool:
    """Return whether together they are short enough to be a name at all."""
    return sum(len(str(part)) for part in parts) <= 256


@given(names(), names(), st.sampled_from(get_args(Conflicts)))
def test_merging_keeps_the_laws(left: DeviceName, right: DeviceName, conflicts: Conflicts) -> None:
    assume(fits(left, right))
    empty = DeviceName()
    assert left.merge(empty, conflicts) == empty.merge(left, conflicts) == left
    assert left.merge(left, conflicts) == left
    if left.matches(right):
        merged = left.merge(right, conflicts)
        assert merged == right.merge(left, conflicts) == left.fill(right)
        assert left.is_specified_by(merged)
        assert right.is_specified_by(merged)
        assert merged.matches(left)
    elif conflicts == "error":
        with pytest.raises(IncompatibleNamesError):
            left.merge(right)


@given(names(), names(), st.sampled_from(["soft", "override"]))
def test_a_lenient_merge_is_strict_about_the_task(
    left: DeviceName, right: DeviceName, conflicts: Conflicts
) -> None:
    assume(fits(left, right))
    tasks = [DeviceName(name.job, name.replica, name.task) for name in (left, right)]
    if tasks[0].matches(tasks[1]):
        merged = left.merge(right, conflicts)
        assert merged.local == left.local.merge(right.local, conflicts)
        if conflicts == "override":
            assert right.is_specified_by(merged)
    else:
        with pytest.raises(IncompatibleNamesError):
            left.merge(right, conflicts)


@given(st.lists(names(), min_size=1, max_size=4))
def test_filling_is_associative(stack: list[DeviceName]) -> None:
    assume(fits(*stack))
    from_left = reduce(DeviceName.fill, stack)
    assert from_left == stack[0].fill(
        reduce(lambda inner, outer: inner.fill(outer), stack[1:], DeviceName())
    )


@given(names(), names())
def test_filling_makes_a_name_or_says_that_it_is_too_long(
    left: DeviceName, right: DeviceName
) -> None:
    try:
        filled = left.fill(right)
    except InvalidDeviceNameError:
        assume(fits(left, right))
        raise
    assert DeviceName.parse(str(filled)) == filled
    assert left.is_specified_by(filled)


@given(names())
def test_every_alias_names_the_device(name: DeviceName) -> None:
    if name.is_complete:
        assert DeviceName.parse(name.aliases[0]) == name
    for alias in name.aliases:
        if alias.startswith("/device:"):
            assert DeviceName.parse(alias) == name.local


def test_the_cache_of_parsed_names_is_bounded() -> None:
    for index in range(10_000):
        DeviceName.parse(f"/task:{index}")
    assert DeviceName.parse.cache_info().currsize <= 4096  # type: ignore[attr-defined]
