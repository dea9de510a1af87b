"""`devicecore run --plan`: programs do the same, and a report says where their calls ran."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.cli import main
from tests.cli.programs import FRAMES_OF_RUNPY, PROGRAM, ours, run

if TYPE_CHECKING:
    from pathlib import Path

WITH_PLAN = """\
'''The documentation.'''
from __future__ import annotations
from __future__ import generator_stop
import atexit
import inspect
import os
import pickle
import sys
import warnings
import cv2
import numpy as np
from cv2 import flip as turned

image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)


class Dataset:
    def __getitem__(self, index):
        return cv2.resize(image + index, (2, 2))


if True:
    def preprocess(image):
        if image is None:
            raise ValueError('of the program')
        small = cv2.resize(image, (3, 3))
        warnings.warn('of preprocess')
        return small


@atexit.register
def at_end():
    print(turned(image, 0).tolist())


print(__doc__, sys.argv, Dataset()[1].tolist(), preprocess(image).tolist())
print(inspect.getsource(Dataset), inspect.getsource(preprocess))
print(pickle.loads(pickle.dumps(preprocess)) is preprocess, sorted(globals()))
os.chdir('/')
try:
    preprocess(None)
finally:
    preprocess(None)
"""
KERNEL = {"device": "cpu", "kernel": "torch"}
PLAN = {"Dataset/__getitem__/cv2.resize": KERNEL, "preprocess": KERNEL, "cv2.flip": KERNEL}
UNMATCHED = (
    "devicecore: plan.json, line 1, {!r}: no call of this process, or of its workers with this "
    "plan, was for it; {}\n"
)
NO_MODULE = UNMATCHED.format("cv2.resize", "no module 'cv2' was imported")


def with_plan(plan: Any, folder: Path, words: list[str], **environment: str) -> Any:
    (folder / "plan.json").write_text(plan if isinstance(plan, str) else json.dumps(plan))
    return ours(["--plan", "plan.json", *words], folder, **environment)


@pytest.mark.parametrize("words", [["program.py"], ["-m", "program"]])
def test_a_plan_changes_nothing_but_where_calls_run(words: list[str], tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(WITH_PLAN)
    code, out, err = run([*words, "a", "-b"], tmp_path)
    assert code == 1
    told = with_plan(PLAN, tmp_path, ["--report", "report.json", *words, "a", "-b"])
    assert told == (code, out, FRAMES_OF_RUNPY.sub("", err))
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    counts = {row["path"]: (row["calls"], row["migrated"]) for row in rows}
    assert counts["__main__:Dataset/__getitem__/cv2:resize"] == (1, 1)
    assert counts["__main__:preprocess/cv2:resize"][1] == 1
    assert counts["cv2:flip"] == (1, 1)  # at the end of the program


@pytest.mark.parametrize(
    ("name", "start"), [("r.txt", "path "), ("r.json", "{"), ("r.html", "<!doctype html>")]
)
def test_forms_of_the_report(name: str, start: str, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(
        "import os, sys\nprint('done')\nif os.fork():\n    sys.exit(os.wait()[1])"
    )
    assert with_plan({"cv2.resize": KERNEL}, tmp_path, ["--report", name, "program.py"]) == (
        0,
        "done\n",
        NO_MODULE,  # once, and not by the child
    )
    assert (tmp_path / name).read_text().startswith(start)


def test_what_a_plan_is_warned_of_is_in_its_file(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("import made_data")
    (tmp_path / "made_data.py").write_text("")
    plan = '{"cv2.flip": "cpu",\n "cvv2.flip": "cpu",\n "made_data.f": "cpu"}'
    _, _, err = with_plan(plan, tmp_path, ["program.py"])
    assert err.startswith("plan.json:2: RuntimeWarning: plan.json: the key 'cvv2.flip' is for no c")
    assert "devicecore/" not in err


def test_keys_that_came_to_nothing_are_told_with_near_names(tmp_path: Path) -> None:
    program = "import cv2, made_data\nclass Local:\n  def run(self): pass"
    (tmp_path / PROGRAM).write_text(program)
    source = "class Pictures:\n  def __getitem__(self, at): pass\n  def prepare(self): pass"
    (tmp_path / "made_data.py").write_text(source)
    near = {
        "Picturs/__getitem__": "did you mean 'Pictures'?",
        "Locl/run": "did you mean 'Local'?",
        "resiz": "did you mean 'cv2.resize'?",
        "Pictures/__getitem__/prepar": (
            "the class 'made_data:Pictures' has no 'prepar'; did you mean 'prepare'?"
        ),
    }
    _, _, err = with_plan(dict.fromkeys(near, KERNEL), tmp_path, ["program.py"])
    lines = err.splitlines()
    assert len(lines) == len(near)
    for line, (key, text) in zip(lines, near.items(), strict=True):
        assert f"{key!r}: no call" in line
        assert line.endswith(text)


def test_a_report_of_a_process_is_not_of_its_children(tmp_path: Path) -> None:
    fork = "import os\nchild = os.fork()\nif child:\n    os._exit(os.waitpid(child, 0)[1])"
    (tmp_path / PROGRAM).write_text(fork)
    assert with_plan({"cv2.resize": KERNEL}, tmp_path, ["--report", "r.txt", "program.py"])[0] == 0
    assert not (tmp_path / "r.txt").exists()


def test_a_report_that_cannot_be_written_any_more(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / PROGRAM).write_text("import os\nos.rmdir('there')")
    words = ["--report", "there/r.txt", "program.py"]
    code, _, err = with_plan({"cv2.resize": KERNEL}, tmp_path, words)
    assert code == 0
    assert err == (
        f"{NO_MODULE}devicecore: {tmp_path}/there/r.txt cannot be written: "
        "No such file or directory\n"
    )


def test_children_that_are_spawned_run_the_originals(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("""\
import multiprocessing as mp
def preprocess(x):
    return __name__, x + 1, hasattr(preprocess, '__wrapped__')
if __name__ == '__main__':
    print(preprocess(1), flush=True)
    with mp.get_context('spawn').Pool(1) as pool:
        print(pool.map(preprocess, [1]))
""")
    out = "('__main__', 2, True)\n[('__mp_main__', 2, False)]\n"
    assert with_plan({"preprocess": KERNEL}, tmp_path, ["program.py"]) == (0, out, "")


def test_names_that_first_stand_for_something_else(tmp_path: Path) -> None:
    plan = {"f": KERNEL, "g": KERNEL}
    program = "f = None\ndef g(): pass\n"
    then = "def f(): g()\nprint(hasattr(g, '__wrapped__'))\nf()"
    (tmp_path / PROGRAM).write_text(f"{program}{then}")
    assert with_plan(plan, tmp_path, ["program.py"]) == (0, "True\n", "")
    (tmp_path / PROGRAM).write_text(f"{program}print(hasattr(g, '__wrapped__'))")
    code, out, err = with_plan(plan, tmp_path, ["program.py"])
    assert (code, out) == (0, "True\n")  # what is wrong with f is not with g
    assert err == (
        "devicecore: plan.json, line 1, 'f': '__main__:f' is of type NoneType, no function\n"
    )


def test_migration_that_is_switched_off(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("def f(): pass\nprint(hasattr(f, '__wrapped__'))\nf()")
    plan = {"f": KERNEL, "misspelt": "cpu"}
    code, out, err = with_plan(plan, tmp_path, ["program.py"])
    assert (code, out, err.count("\n")) == (0, "True\n", 1)
    off = with_plan(plan, tmp_path, ["program.py"], DEVICECORE_MIGRATE="off")
    assert off == (0, "False\n", "")


@pytest.mark.parametrize("error", [True, False])
def test_keys_that_were_for_no_call(error: bool, tmp_path: Path) -> None:
    missing = "the program had no such name when it was last looked for"
    unmatched = {
        "Potos/__getitem__": f"{missing}; did you mean 'Photos'?",
        "**/Photos/__getitem__": "all that it names is there",
        "colorsys.hls_to_rgb": "all that it names is there",
        "statistics.fmean": "no module 'statistics' was imported",
        "assigned": "all that it names is there",
        "misspelt": missing,
    }
    (tmp_path / PROGRAM).write_text(
        "import colorsys\nimport sys\n"
        "class Photos:\n    def __getitem__(self, index): return index\n"
        "def used(): return 1\ndef stays(): return used()\n"
        "assigned = lambda: 1\n"
        f"print(stays())\n{'1 / 0' if error else 'sys.exit(3)'}"
    )
    plan = {"used": KERNEL, "stays": "cpu", **dict.fromkeys(unmatched, KERNEL), "misspelt": "cpu"}
    words = ["--report", "report.json", PROGRAM.name]
    code, out, err = with_plan(plan, tmp_path, words)
    assert (code, out) == (1 if error else 3, "1\n")
    said = [UNMATCHED.format(key, why) for key, why in unmatched.items()]
    assert err.endswith("".join(said))
    assert err.startswith("Traceback") if error else err == "".join(said)
    told = json.loads((tmp_path / "report.json").read_text())["unmatched"]
    assert [f"devicecore: {each}\n" for each in told] == said


def test_many_keys_that_were_for_no_call(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("")
    plan = {f"f{number}": KERNEL for number in range(15)}
    words = ["--report", "r.txt", "program.py"]
    code, _, err = with_plan(plan, tmp_path, words)
    assert code == 0
    assert err.count("\n") == 13
    assert err.endswith("devicecore: 3 more keys were for no call; --report names them\n")
    assert (tmp_path / "r.txt").read_text().count("unmatched: ") == 15


@pytest.mark.parametrize(
    ("program", "is_ended"),
    [
        ("import made_later", True),
        ("import made_later as m", False),
        ("import helper\ndef other(): pass\nhelper.made_later", False),
    ],
)
def test_what_a_module_does_not_have_is_said_once(
    program: str, is_ended: bool, tmp_path: Path
) -> None:
    (tmp_path / "made_later.py").write_text("def resize(): pass")
    (tmp_path / "helper.py").write_text("import made_later")
    (tmp_path / PROGRAM).write_text(f"{program}\nprint('ran')")
    plan = {"made_later.rezise": KERNEL, "other": KERNEL}
    code, out, err = with_plan(plan, tmp_path, ["program.py"])
    assert (code, out) == ((2, "") if is_ended else (0, "ran\n"))
    assert err == (
        "devicecore: plan.json, line 1, 'made_later.rezise': "
        "the module 'made_later' has no 'rezise'; near are 'resize'\n"
    )


def test_an_import_is_not_where_another_name_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "made_later.py").write_text("def resize(): return 1")
    (tmp_path / PROGRAM).write_text(
        "f = None\nimport made_later as m\ndef f(): return m.resize()\nprint(f())"
    )
    plan = {"made_later.resize": KERNEL, "f": KERNEL}
    assert with_plan(plan, tmp_path, ["program.py"]) == (0, "1\n", "")


def test_packages_that_may_be_imported(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("def f(): pass")
    (tmp_path / PROGRAM).write_text("import sys\nprint('helpers' in sys.modules)")
    plan = {"helpers.f": KERNEL}
    assert with_plan(plan, tmp_path, ["program.py"])[1] == "False\n"
    assert with_plan(plan, tmp_path, ["--allow-imports", "helpers", "program.py"])[1] == "True\n"


@pytest.mark.parametrize(
    ("plan", "words", "said"),
    [
        ("[", [], "a plan has no lists"),
        ({"f": "nowhere:x"}, [], "plan.json, line 1, 'f': the device 'nowhere:x' is none"),
        ({"math.sqr": "gpu"}, ["--allow-imports", "math"], "has no 'sqr'"),
        ({"Data/get": KERNEL}, [], "line 1, 'Data/get': the class '__main__:Data' has no 'get'"),
        ({"f": KERNEL}, ["--verify", "-1"], "--verify -1 is no number"),
        ({"f": KERNEL}, ["--report", "report.pdf"], "report.pdf names none of .txt"),
        ({"f": KERNEL}, ["--report", "no/r.txt"], "is in no folder"),
        ({"f": KERNEL}, ["--plan", "other.json"], "other.json cannot be read: No such file"),
    ],
)
def test_plans_that_are_wrong(plan: Any, words: list[str], said: str, tmp_path: Path) -> None:
    program = "try:\n    class Data: pass\nexcept Exception: pass\nprint('ran')"
    (tmp_path / PROGRAM).write_text(program)
    code, out, err = with_plan(plan, tmp_path, [*words, "program.py"])
    assert (code, out) == (2, "")
    assert err.startswith("devicecore: ")
    assert said in err
    assert err.count("\n") == 1


def test_options_that_need_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--strict", "--verify=2", "--report=r.txt", "--allow-imports=cv2"):
        assert main(["run", option, "program.py"]) == 2
        assert "--plan" in capsys.readouterr().err
