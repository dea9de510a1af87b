"""Plans: what they may say, what is wrong with others and on which line, and that they are data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from devicecore.cv.policy import LABELS
from devicecore.errors.lookup import PlanError
from devicecore.kernels import Exactness
from devicecore.migrate.plan.keys import Key, first_tie
from devicecore.migrate.plan.optimization_plan import (
    MAPPING,
    MOST_BYTES,
    KernelLabel,
    OptimizationPlan,
    Options,
    PlanEntry,
    Residency,
)

if TYPE_CHECKING:
    from pathlib import Path

load = OptimizationPlan.load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def loaded(file: Path, text: str) -> OptimizationPlan:
    file.write_text(text, encoding="utf-8")
    return load(file)


def refused(file: Path, text: str | bytes) -> PlanError:
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    with pytest.raises(PlanError) as caught:
        load(file)
    assert caught.value.plan == str(file)
    return caught.value


def test_a_plan_maps_keys_to_devices() -> None:
    plan = load({"Dataset/__getitem__/preprocess": "cuda:0", "cv2.resize": "auto"})
    assert [(str(entry.key), entry.device) for entry in plan.entries] == [
        ("Dataset/__getitem__/preprocess", "cuda:0"),
        ("cv2.resize", "auto"),
    ]
    assert {entry.options for entry in plan.entries} == {Options()}
    assert plan.source == MAPPING


def test_a_file_may_be_named_by_text_or_path(file: Path) -> None:
    plan = loaded(file, '{"cv2.resize": "cuda:0"}')
    assert plan == load(str(file)) == load({"cv2.resize": "cuda:0"})
    assert plan.source == str(file)
    assert plan.entries[0].line == 1


def test_a_file_that_is_not_there_is_an_error_of_the_system(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"plan\.json"):
        load(file)


def test_an_empty_plan_says_nothing() -> None:
    assert load({}).entries == ()
    assert load({"version": 1, "paths": {}}).entries == ()


@pytest.mark.parametrize(
    "device", ["auto", "gpu", "cpu", "cuda:1", "GPU:0", "/device:ACME:3", "/job:a/task:1/gpu:0"]
)
def test_any_device_name_is_a_device(device: str) -> None:
    assert load({"f": device}).entries[0].device == device


def test_a_key_may_have_options() -> None:
    options = {"residency": "scoped", "min_pixels": 4096, "accept": "lsb1", "kernel": "torch"}
    entry = load({"cv2.resize": {"device": "gpu", **options}}).entries[0]
    assert entry.options == Options("scoped", 4096, "lsb1", "torch")


def test_the_defaults_of_an_envelope_hold_for_all_keys() -> None:
    plan = load(
        {
            "version": 1,
            "defaults": {"kernel": "torch", "min_pixels": 10},
            "paths": {"a": "cpu", "b": {"device": "cpu", "kernel": None, "min_pixels": 0}},
        }
    )
    assert [entry.options for entry in plan.entries] == [
        Options(kernel="torch", min_pixels=10),
        Options(),
    ]


def test_functions_may_be_called_as_the_parts_of_an_envelope_are() -> None:
    plan = load({"version": "cpu", "paths": "cuda:0", "defaults": "gpu"})
    assert [str(entry.key) for entry in plan.entries] == ["version", "paths", "defaults"]


@pytest.mark.parametrize(
    ("device", "kernel", "expected"),
    [
        ("cpu", None, True),
        ("CPU:0", None, True),
        ("/device:CPU:0", None, True),
        ("cpu", "torch", False),
        ("gpu", None, False),
        ("auto", None, False),
    ],
)
def test_the_cpu_without_a_kernel_is_the_original(device: str, kernel: Any, expected: bool) -> None:
    entry = PlanEntry(Key.parse("f"), device, Options(kernel=kernel))
    assert entry.is_original is expected


def test_the_words_of_options_are_those_of_the_kernels() -> None:
    assert get_args(KernelLabel) == LABELS
    for label in LABELS:
        assert Options(kernel=label).kernel == label
    for promise in get_args(Exactness):
        assert Options(accept=promise).accept == promise


# --- what is wrong with a plan

OPTION_WORDS = "'device', 'residency', 'min_pixels', 'accept', 'kernel'"
DEVICES = "a device is a name such as 'cuda:0', or 'auto', 'gpu' or 'cpu'"
PLUG_IN = "a plug-in's type is written '/device:TYPE:0'"
ENVELOPE = 'a plan with options for all is {"version": 1, "paths": {…}, "defaults": {…}}'
TIE = "and neither is longer; name one more frame in one of them, or leave one out"
PROMISES = "it is one of 'exact', 'lsb1', 'tolerance', 'close'"
KERNELS = "it is one of 'native', 'torch', 'triton', 'kornia'"
VERSION = "this devicecore reads version 1"
NUMBER = "it is a whole number, 0 or more"
DEEP = (
    "its objects lie deeper than 3 in each other; "
    "a plan is an object of keys, each with a device or with an object of options"
)
BAD = "bad JSON at column "
WRONG: dict[str, tuple[int, str]] = {
    # the text of a plan: the line that is named, and what is said of it
    "plan": (1, f"{BAD}1: expecting value"),
    "": (1, f"{BAD}1: expecting value"),
    "\n\n ": (3, f"{BAD}2: expecting value"),
    '"cuda:0"': (1, "it is 'cuda:0'; a plan is an object of keys with a device each"),
    "null": (1, "it is null; a plan is an object of keys with a device each"),
    '\n["a"]': (2, f"{BAD}1: a plan has no lists"),
    '{"f":\n ["cpu"]}': (2, f"{BAD}2: a plan has no lists"),
    "{'f': 'cpu'}": (1, f"{BAD}2: a key in double quotes belongs here"),
    '{"f": "cpu",\n}': (2, f"{BAD}1: a key in double quotes belongs here"),
    '{"f" "cpu"}': (1, f"{BAD}6: a ':' belongs here"),
    '{"f": "cpu"\n "g": "cpu"}': (2, f"{BAD}2: a ',' belongs here"),
    '{"f": }': (1, f"{BAD}7: expecting value"),
    '{"f": "cpu"': (1, f"{BAD}12: a ',' belongs here"),
    '{\n"f': (2, f"{BAD}1: unterminated string"),
    '{"f\n": 1}': (1, f"{BAD}4: invalid control character at"),
    r'{"\x": 1}': (1, f"{BAD}3: invalid \\escape"),
    '{}\n{"f": "cpu"}': (2, f"{BAD}1: nothing belongs after the end of the plan"),
    '{"f":\nNaN}': (2, f"{BAD}1: a number that JSON, or Python, does not have"),
    '{"f": -Infinity}': (1, f"{BAD}7: a number that JSON, or Python, does not have"),
    '{"f": ' + "9" * 5000 + "}": (1, f"{BAD}7: a number that JSON, or Python, does not have"),
    '{"a":{"b":{"c":\n{}}}}': (2, DEEP),
    '{"a":' * 100_000: (1, DEEP),
    "[" * 100_000: (1, f"{BAD}1: a plan has no lists"),
    '{"f": 0,\n"g": 0,\n"f": 0}': (3, "'f': it is there twice, on lines 1 and 3; leave one out"),
    '{"f": "cpu",\n"\\u0066": "gpu"}': (2, "'f': it is there twice, on lines 1 and 2"),
    '{"f": {"device": 1,\n"kernel": 1, "kernel": 1}}': (2, "'kernel': it is there twice, on"),
    '{"f": "cpu",\n"a//b":\n "cpu"}': (2, "'a//b': it has an empty segment; remove the /"),
    '{"": "cpu"}': (1, "a key is empty; a key is one or more segments with / between them"),
    '{"f": 0}': (1, f"'f': its device is 0; {DEVICES}"),
    '{"f": null}': (1, f"'f': its device is null; {DEVICES}"),
    '{"f": true}': (1, f"'f': its device is true; {DEVICES}"),
    '{"f": {"device": {}}}': (1, f"'f': its device is an object; {DEVICES}"),
    '{"f": ""}': (1, f"'f': the device '' says nothing of a device; {DEVICES}"),
    '{"f":\n{"kernel": "torch",\n"device": "cuda0"}}': (
        3,
        f"unknown device type 'cuda0'; {DEVICES}; {PLUG_IN}; did you mean 'cuda:0'?",
    ),
    '{\n"f": {}}': (2, f"'f': it has no 'device'; {DEVICES}"),
    '{"f": {"device": "cpu",\n"residncy": "plain"}}': (
        2,
        f"'f': 'residncy' is no option; there are {OPTION_WORDS}; did you mean 'residency'?",
    ),
    '{"f": {"device": "cpu",\n"residency": "scope"}}': (
        2,
        "'residency' is 'scope'; it is one of 'plain', 'scoped'; did you mean 'scoped'?",
    ),
    '{"f": {"device": "cpu", "accept": 1}}': (1, f"'accept' is 1; {PROMISES}"),
    '{"f": {"device": "cpu", "kernel": {}}}': (1, f"'kernel' is an object; {KERNELS}"),
    '{"f": {"device": "cpu", "min_pixels": -1}}': (1, f"'min_pixels' is -1; {NUMBER}"),
    '{"f": {"device": "cpu", "min_pixels": 1.0}}': (1, f"'min_pixels' is 1.0; {NUMBER}"),
    '{"f": {"device": "cpu", "min_pixels": true}}': (1, f"'min_pixels' is true; {NUMBER}"),
    '{"f": {"device": "cpu", "min_pixels": "1"}}': (1, f"'min_pixels' is '1'; {NUMBER}"),
    '{"a/*": "cpu",\n"*/b": "gpu"}': (2, f"'*/b': it and 'a/*' on line 1 both match 'a/b', {TIE}"),
    '\n{"paths": {"f": "cpu"}}': (2, f"there is no 'version'; {ENVELOPE}"),
    '{"version": 1}': (1, f"there is no 'paths'; {ENVELOPE}"),
    '{"paths": {},\n"version": 2}': (2, f"'version': it is 2; {VERSION}"),
    '{"version": true, "paths": {}}': (1, f"'version': it is true; {VERSION}"),
    '{"version": "1", "paths": {}}': (1, f"'version': it is '1'; {VERSION}"),
    '{"version": 1,\n"path": {}}': (
        2,
        "it is no part of a plan; there are 'version', 'paths', 'defaults'; did you mean 'paths'?",
    ),
    '{"version": 1,\n"paths": "cpu"}': (2, "'paths': it is 'cpu'; it is an object"),
    '{"version": 1, "paths": {},\n"defaults": 1}': (2, "'defaults': it is 1; it is an object"),
    '{"version": 1, "paths": {},\n"defaults":\n{"device": "cpu"}}': (
        3,
        "'defaults': 'device' is no option; there are 'residency', 'min_pixels', 'accept',",
    ),
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:40])
def test_what_is_wrong_is_said_with_its_line(text: str, file: Path) -> None:
    line, message = WRONG[text]
    error = refused(file, text)
    assert error.line == line
    assert str(error).startswith(f"{file}, line {line}")
    assert message in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_are_right_beside_escapes_and_other_alphabets(
    newline: str, mark: str, file: Path
) -> None:
    lines = ['{"a\\u00e9\\u0062": "cpu",', '"\u65b9\u6cd5":', '"\\u0063pu",', '"b\\n": "cpu"}']
    error = refused(file, mark + newline.join(lines))
    assert error.line == 4
    assert error.key == "b\n"
    lines[-1] = '"\U00010400": "?"}'
    error = refused(file, mark + newline.join(lines))
    assert error.line == 4
    assert error.key == "\U00010400"


def test_a_text_with_the_signs_of_objects_is_a_text(file: Path) -> None:
    error = refused(file, '{"f":\n "}{\\",:[]"}')
    assert error.line == 1
    assert "the device '}{\",:[]' is none" in str(error)


def test_a_file_of_another_encoding(file: Path) -> None:
    assert "it is not UTF-8; save it as UTF-8" in str(refused(file, '{"f"}'.encode("utf-16")))
    error = refused(file, '{"f": "cpu",\n"\xe9": "cpu"}'.encode("latin-1"))
    assert error.line == 2


def test_a_huge_file_is_refused_before_it_is_read(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(MOST_BYTES)
    tracemalloc.start()
    with pytest.raises(PlanError) as caught:
        load(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert str(caught.value) == (
        f"{file}: it has 50 MB or more; "
        "a plan is shorter: it names functions, one short line for each"
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_without_end_is_refused(file: Path) -> None:
    """It has no size, so that only reading can tell."""
    os.mkfifo(file)

    def pour() -> None:
        with suppress(BrokenPipeError), file.open("wb") as pipe:
            pipe.write(b" " * (MOST_BYTES + 1))

    writer = threading.Thread(target=pour, daemon=True)
    writer.start()
    with pytest.raises(PlanError, match="50 MB or more"):
        load(file)
    writer.join()


def test_a_mapping_is_judged_as_a_file_is() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = endless
    wrongs: list[tuple[Any, str]] = [
        ({1: "cpu"}, "the plan: the key 1 is no text; keys are texts"),
        ({"f": ["cpu"]}, f"the plan, 'f': its device is a list; {DEVICES}"),
        ({"f": float("nan")}, "the plan, 'f': its device is nan;"),
        (
            {"f": {"device": "cpu", "min_pixels": float("nan")}},
            "'min_pixels' is nan; it is a whole",
        ),
        ({"f": {"device": "cpu", "kernel": ()}}, "the option 'kernel' is a list;"),
        ({"a": {"b": {"c": {}}}}, f"the plan: {DEEP}"),
        (endless, f"the plan: {DEEP}"),
        ({"a/*": "cpu", "*/b": "cpu"}, "'*/b': it and 'a/*' both match 'a/b', and neither"),
    ]
    for wrong, message in wrongs:
        with pytest.raises(PlanError) as caught:
            load(wrong)
        assert message in str(caught.value)
        assert caught.value.line is None


def test_what_is_no_source_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        load(3)  # type: ignore[arg-type]


def test_a_plan_made_in_a_program_is_judged_too() -> None:
    entry = PlanEntry(Key.parse("f"), "cpu")
    with pytest.raises(PlanError, match="'f': it and 'f' both match 'f'"):
        OptimizationPlan((entry, evolve(entry, device="gpu")))
    with pytest.raises(PlanError, match="the option 'min_pixels' is -1"):
        Options(min_pixels=-1)


# --- there and back

options = st.builds(
    Options,
    st.sampled_from(get_args(Residency)),
    st.just(0) | st.integers(0, 10**30),
    st.sampled_from(get_args(Exactness)),
    st.none() | st.sampled_from(LABELS),
)
entries = st.builds(
    PlanEntry,
    st.lists(
        st.sampled_from(["a", "*", "m:f", "cv2.resize", "M\u00e9thode", "version", "paths"]),
        min_size=1,
        max_size=3,
    )
    .filter(lambda segments: set(segments) != {"*"})
    .map(lambda segments: Key.parse("/".join(segments))),
    st.sampled_from(["auto", "gpu", "cpu", "cuda:1", "/device:ACME:0"]),
    options,
)


@st.composite
def plans(draw: st.DrawFn) -> OptimizationPlan:
    kept: list[PlanEntry] = []
    for entry in draw(st.lists(entries, max_size=6)):
        if first_tie([*kept, entry]) is None:
            kept.append(entry)
    return OptimizationPlan(tuple(kept))


@given(plans())
@example(OptimizationPlan((PlanEntry(Key.parse("version"), "cpu"),)))
def test_a_dumped_plan_loads_to_an_equal_one(plan: OptimizationPlan) -> None:
    assert load(plan.dump()) == plan
    assert load(json.loads(json.dumps(plan.dump()))) == plan


@given(plans(), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_a_written_plan_has_its_lines(
    tmp_path_factory: pytest.TempPathFactory,
    plan: OptimizationPlan,
    indent: Any,
    ascii_only: bool,
) -> None:
    file = tmp_path_factory.getbasetemp() / "written.json"
    text = json.dumps(plan.dump(), indent=indent, ensure_ascii=ascii_only)
    file.write_text(text, encoding="utf-8", newline="")
    read = load(file)
    assert read == plan
    lines = text.split("\n")
    for entry in read.entries:
        assert entry.line is not None
        written = json.dumps(str(entry.key), ensure_ascii=ascii_only)
        assert f"{written}: " in lines[entry.line - 1]


def test_reading_a_plan_imports_nothing_that_it_names(file: Path) -> None:
    file.write_text('{"cv2.resize": "cuda:0", "numpy:add": "cpu", "json.tool.main": "cpu"}')
    code = (
        "import sys; from devicecore.migrate.plan.optimization_plan import OptimizationPlan;"
        f"OptimizationPlan.load({str(file)!r});"
        "print({'cv2', 'numpy', 'torch', 'json.tool'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
