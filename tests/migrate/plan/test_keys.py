"""Keys of a plan: what they match, which of them win, and what is no key."""

from __future__ import annotations

import re

import pytest
from attrs import frozen
from hypothesis import example, given
from hypothesis import strategies as st

from devicecore.errors import DeviceCoreError
from devicecore.errors.lookup import PlanError
from devicecore.migrate.plan.keys import (
    MOST_SEGMENTS,
    Key,
    Keys,
    common_path,
    conflicts,
    first_tie,
)

NAMES = st.sampled_from(["a", "b", "m:f"])


@frozen
class Entry:
    """Something with a key."""

    key: Key
    number: int = 0


def entry(text: str) -> Entry:
    return Entry(Key.parse(text))


def expression(key: Key) -> re.Pattern[str]:
    """Return *key* as a regular expression for paths with a slash after each segment."""
    one = r"[^/]+/"
    parts = {"*": one, "**": f"(?:{one})*"}
    pattern = "".join(parts.get(segment, re.escape(segment) + "/") for segment in key.pattern)
    return re.compile(f"(?:{one})*{pattern}")


def matches_naively(key: Key, path: tuple[str, ...]) -> bool:
    return expression(key).fullmatch("".join(f"{segment}/" for segment in path)) is not None


@st.composite
def keys(draw: st.DrawFn) -> Key:
    segments = draw(st.lists(NAMES | st.sampled_from(["*", "**"]), max_size=5))
    segments.insert(draw(st.integers(0, len(segments))), draw(NAMES))
    pattern = [
        segment
        for at, segment in enumerate(segments)
        if segment != "**" or segments[at - 1 : at] != ["**"]
    ]
    return Key.parse("/".join(pattern))


paths = st.lists(NAMES | st.just("c"), max_size=7).map(tuple)
frames = st.lists(NAMES.map(lambda name: (name,)) | st.just(("m:C", "f")), max_size=5).map(tuple)


@given(keys(), paths)
@example(Key.parse("a/**/a"), ("a", "a"))
@example(Key.parse("a/**"), ("b", "a"))
@example(Key.parse("a/*"), ("a",))
@example(Key.parse("**/a"), ())
def test_a_key_matches_as_a_regular_expression_does(key: Key, path: tuple[str, ...]) -> None:
    assert key.matches(path) == matches_naively(key, path)


@given(keys(), keys(), paths)
@example(Key.parse("a/*"), Key.parse("*/b"), ("a", "b"))
@example(Key.parse("a/**/b"), Key.parse("a/b"), ("a", "b"))
@example(Key.parse("**/a/**"), Key.parse("*/a"), ("b", "a"))
def test_keys_that_match_one_path_have_a_common_path(
    left: Key, right: Key, path: tuple[str, ...]
) -> None:
    if matches_naively(left, path) and matches_naively(right, path):
        assert common_path(left, right) is not None
        assert conflicts(left, right) == (left.length == right.length)


@given(keys(), keys())
def test_a_common_path_is_matched_by_both(left: Key, right: Key) -> None:
    path = common_path(left, right)
    assert (path is None) == (common_path(right, left) is None)
    if path is not None:
        assert matches_naively(left, path)
        assert matches_naively(right, path)


@given(st.lists(keys(), max_size=6))
def test_a_tie_is_found_exactly_where_two_keys_conflict(them: list[Key]) -> None:
    tied = any(
        conflicts(left, right) for at, left in enumerate(them) for right in them[:at]
    )  # all pairs, each once
    found = first_tie([Entry(key, number) for number, key in enumerate(them)])
    assert (found is not None) == tied
    if found is not None:
        first, second, path = found
        assert first.number < second.number
        assert conflicts(first.key, second.key)
        assert matches_naively(first.key, path)
        assert matches_naively(second.key, path)


def find_naively(them: list[Key], path: tuple[tuple[str, ...], ...]) -> Key | None:
    for depth in range(len(path), 0, -1):
        flat = tuple(segment for frame in path[:depth] for segment in frame)
        matching = [key for key in them if matches_naively(key, flat)]
        if matching:
            return max(matching, key=lambda key: key.length)
    return None


@given(st.lists(keys(), max_size=6), frames)
def test_the_longest_key_wins_and_else_the_nearest_frame(
    them: list[Key], path: tuple[tuple[str, ...], ...]
) -> None:
    untied: list[Key] = []
    for key in them:
        if not any(conflicts(key, other) for other in untied):
            untied.append(key)
    found = Keys(map(Entry, untied)).find(path)
    expected = find_naively(untied, path)
    assert (found and found.key) == expected


@given(keys())
def test_a_key_is_read_back_from_its_text(key: Key) -> None:
    assert Key.parse(str(key)) == key


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("cv2:resize", "cv2:resize", True),
        ("cv2:resize", "a/b/cv2:resize", True),
        ("cv2:resize", "a/mycv2:resize", False),
        ("cv2:resize", "cv2:resize/a", False),
        ("a/cv2:resize", "b/cv2:resize", False),
        ("a/cv2:resize", "cv2:resize", False),
        ("a/*/c", "a/b/c", True),
        ("a/*/c", "a/c", False),
        ("a/*/c", "a/b/b/c", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "x/a/b/b/c", True),
        ("a/**", "a", True),
        ("a/**", "x/a/b/c", True),
        ("*/c", "c", False),
        ("**/c", "c", True),
    ],
)
def test_what_a_key_matches(text: str, path: str, expected: bool) -> None:
    assert Key.parse(text).matches(tuple(path.split("/"))) is expected


def test_the_length_counts_what_is_asked_for() -> None:
    assert [Key.parse(text).length for text in ("a", "a/*", "a/**", "a/**/b/*")] == [1, 2, 1, 3]


def test_a_method_is_never_cut_from_its_class() -> None:
    """A key for the class's own segment does not cover what runs inside a method of it."""
    lonely = Keys([entry("m:Dataset")])
    assert lonely.find((("m:Dataset", "load"), ("cv2:resize",))) is None
    whole = Keys([entry("m:Dataset/load")])
    assert whole.find((("m:Dataset", "load"), ("cv2:resize",))) is not None


def test_the_key_for_the_call_wins_over_that_of_a_frame_around_it() -> None:
    them = [entry("a/b/c"), entry("cv2:resize"), entry("c")]
    found = Keys(them)
    assert found.find((("a",), ("b",), ("c",), ("cv2:resize",))) is them[1]
    assert found.find((("a",), ("b",), ("c",), ("cv2:blur",))) is them[0]
    assert found.find((("b",), ("c",), ("cv2:blur",), ("d",))) is them[2]
    assert found.find((("b",), ("d",))) is None
    assert found.find(()) is None


def test_names_are_normalized_as_python_does() -> None:
    assert Key.parse("me\u0301thode") == Key.parse("m\u00e9thode")
    assert Key.parse("\ufb01lter").pattern == ("filter",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a key is empty; a key is one or more segments with / between them"),
        ("a//b", "'a//b': it has an empty segment; remove the / that has nothing beside it"),
        ("/a", "'/a': it has an empty segment; remove the / that has nothing beside it"),
        ("a/", "'a/': it has an empty segment; remove the / that has nothing beside it"),
        ("cv2.re*", "'cv2.re*': 'cv2.re*' is partly a wildcard; * and ** stand for whole segments"),
        ("cv2.**", "'cv2.**': 'cv2.**' is partly a wildcard; * and ** stand for whole segments"),
        (".*", "'.*': '.*' is partly a wildcard; * and ** stand for whole segments"),
        (
            "cv2.*/f",
            "'cv2.*/f': 'cv2.*' is no frame; * and ** stand for whole segments, and module.*",
        ),
        ("a-b.*", "'a-b.*': 'a-b' names nothing in Python"),
        ("***", "'***': '***' is partly a wildcard; * and ** stand for whole segments"),
        ("*/**", "'*/**': it names no function; wildcards stand beside names of functions to "),
        ("a/**/**/b", "'a/**/**/b': it has ** twice in a row; one ** says the same"),
        (
            "m:f.<locals>.g",
            (
                "'m:f.<locals>.g': 'm:f.<locals>.g' lives inside another function, "
                "where nothing can be patched; name the function around it"
            ),
        ),
        (
            "a/cv2 .resize",
            (
                "'a/cv2 .resize': 'cv2 .resize' names nothing in Python; "
                "a segment is a name, a dotted name, module:qualname, * or **"
            ),
        ),
        ("cv2..resize", "'cv2..resize' names nothing in Python"),
        ("cv2:", "'cv2:' names nothing in Python; cv2.* stands for the functions of a module"),
        ("opencv.", "'opencv.' names nothing in Python; cv2.* stands for the functions of a mod"),
        ("a/np.linalg.", "'np.linalg.' names nothing in Python; np.linalg.* stands for the fun"),
        (":resize", "':resize' names nothing in Python"),
        ("a:b:c", "'a:b:c' names nothing in Python"),
        ("\ud800", r"'\ud800' names nothing in Python"),
        (
            "/".join("a" * 65),
            (
                "a key of 65 segments; at most 64 are possible; name the innermost frames only: "
                "a key matches any path that ends with it"
            ),
        ),
    ],
)
def test_what_is_no_key(text: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        Key.parse(text)
    assert message in str(caught.value)
    assert isinstance(caught.value, DeviceCoreError)


def test_the_longest_keys_are_compared_at_once() -> None:
    """Wildcards on both sides could make a search try every way to place them."""
    half = MOST_SEGMENTS // 2
    left = Key.parse("/".join(["**/a"] * half))
    right = Key.parse("/".join(["**/b"] * half))
    assert common_path(left, right) is None
    assert not left.matches(("a",) * (half - 1) + ("b",) * 1000)


def test_thousands_of_keys_are_compared_at_once() -> None:
    assert first_tie([entry(f"f{number}/cv2.resize") for number in range(20_000)]) is None
