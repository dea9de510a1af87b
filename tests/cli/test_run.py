"""`devicecore run`, compared with Python that runs the same programs itself."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.cli.programs import PROGRAM, ours, same

if TYPE_CHECKING:
    from pathlib import Path

WHERE = """\
import sys
print(sorted(globals()), __name__, __file__, __package__, __cached__, __doc__)
print(type(__loader__), getattr(__spec__, "name", __spec__), __builtins__, sys.argv)
print(sys.path[0], vars(sys.modules["__main__"]) is globals(), sys.flags.safe_path)
import beside
"""


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Return a folder with the same program in every form in which Python takes one."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "package").mkdir()
    for folder in (tmp_path, tmp_path / "sub", tmp_path / "package"):
        (folder / "beside.py").write_text("print('beside', __name__)")
    (tmp_path / "package" / "__init__.py").write_text("import sys; print(__name__, sys.argv)")
    for name in ("program.py", "sub/__main__.py", "package/__main__.py", "package/part.py"):
        (tmp_path / name).write_text(WHERE)
    (tmp_path / "sub" / "link.py").symlink_to("../program.py")
    py_compile.compile(str(tmp_path / "program.py"), str(tmp_path / "compiled.pyc"))
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("__main__.py", WHERE)
        archive.writestr("beside.py", "print('beside in an archive')")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "program.py",
        "./program.py a -b --plan x --version",
        "sub/../program.py -- a",
        "-- program.py",
        "sub/link.py",
        "compiled.pyc",
        "sub a",
        "archive a",
        "- a",
        "-m program -m a -h",
        "-m package -- --strict",
        "-m package.part",
    ],
)
def test_where_a_program_is(words: str, places: Path) -> None:
    code, out, _ = same(words.split(), places, WHERE)
    assert code == 0
    assert "beside" in out


def test_where_a_program_is_on_a_safe_path(places: Path) -> None:
    (places / "program.py").write_text("import sys; print(sys.path, sys.argv)")
    same(["program.py"], places, PYTHONSAFEPATH="1")
    same(["sub"], places, PYTHONSAFEPATH="1")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("nothing.py", 2),
        ("", 2),
        ("empty", 1),
        ("-m nothing", 1),
        ("-m empty", 1),
        ("-m package.nothing", 1),
        ("-m package.nothing.below", 1),
        ("-m .package", 1),
        ("-m program.py", 1),
    ],
)
def test_what_is_no_program(words: str, code: int, places: Path) -> None:
    (places / "empty").mkdir()
    if words:
        assert same(words.split(), places)[0] == code
    else:
        assert ours([], places)[0] == code


ENDINGS = {
    "exit": "import sys; sys.exit(3)",
    "exit with text": "import sys; sys.exit('no more')",
    "exit with nothing": "raise SystemExit",
    "exit at once": "import os; print('lost', end=''); os._exit(4)",
    "exception": "def f(x):\n    return 1 / x\n\n\nprint('so far')\nf(0)",
    "cause": "try:\n    {}[1]\nexcept KeyError as e:\n    raise ValueError('so') from e",
    "context": "try:\n    {}[1]\nexcept KeyError:\n    raise ValueError('so')",
    "group": "raise ExceptionGroup('both', [ValueError(1), TypeError(2)])",
    "interrupt": "print('so far')\nraise KeyboardInterrupt",
    "signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "broken pipe": "raise BrokenPipeError(32, 'nobody reads')",
    "ours": "from devicecore.errors import DeviceCoreError as E\nraise E('of the program')",
    "syntax": "print('never')\nx = = 1\n",
    "indentation": "if 1:\nprint('never')\n",
    "late syntax": "def f():\n    x = 1\n    global x\n",
    "hook": "import sys\nsys.excepthook = lambda *a: print('seen', a[2].tb_lineno)\n1 / 0",
    "broken hook": "import sys\ndef hook(*a):\n    [][1]\nsys.excepthook = hook\n1 / 0",
    "hook that exits": "import sys\nsys.excepthook = lambda *a: sys.exit(5)\n1 / 0",
    "last": """\
import atexit, sys, traceback
@atexit.register
def at_end():
    print(sys.last_type, [each.name for each in traceback.extract_tb(sys.last_traceback)])
    print(sys.excepthook is sys.__excepthook__)
1 / 0
""",
    "thread": """\
import threading, time
def late():
    time.sleep(0.1)
    print('late')
    raise ValueError('in a thread')
threading.Thread(target=late, name='one').start()
""",
    "error at exit": "import atexit\natexit.register(lambda: 1 / 0)\nprint('done')",
    "objects at exit": """\
class Last:
    def __del__(self):
        print('gone')
last = Last()
""",
    "no end of line": "import sys\nsys.stdout.write('kept')\nsys.stderr.write('too')",
    "fork": "import os, sys\nif not os.fork():\n    sys.exit(3)\nprint(os.wait()[1])",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_a_program_ends(name: str, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(ENDINGS[name])
    same([str(PROGRAM)], tmp_path)


def test_letters_that_the_output_lacks(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("print('so far')\nprint('\\xe9')")
    code, _, err = same([str(PROGRAM)], tmp_path, PYTHONIOENCODING="ascii")
    assert code == 1
    assert "UnicodeEncodeError" in err


def test_an_exception_of_a_module(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("def f():\n    {}['key']\n\n\nf()")
    code, _, err = same(["-m", "program"], tmp_path)
    assert code == 1
    assert err.count("File") == 2


def test_an_exception_of_a_package_around_a_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("1 / 0")
    code, _, err = same(["-m", "package.part"], tmp_path)
    assert code == 1
    assert "devicecore/" not in err


INSIDES = {
    "docstring": '"""What it does."""\nfrom __future__ import annotations\nprint(__doc__)',
    "input": "import sys\nprint(input('? '), sys.stdin.read())",
    "warnings": """\
import warnings
def old():
    warnings.warn('old', DeprecationWarning, stacklevel=2)
old()
warnings.warn('now')
assert 1 is 1
""",
    "pickle": """\
import inspect, pickle
from dataclasses import dataclass
from typing import NamedTuple, get_type_hints
@dataclass
class One:
    two: 'Two'
class Two(NamedTuple):
    x: int = 1
loaded = pickle.loads(pickle.dumps(One(Two())))
print(loaded, get_type_hints(One), inspect.getsource(One), inspect.getmodule(One).__name__)
import __main__
print(__main__.One is One)
""",
    "spawn": """\
import multiprocessing as mp
from pathlib import Path
class Task:
    def __init__(self, x): self.x = x
    def __call__(self): return __name__, self.x + 1
def work(task): return task()
print(__name__, flush=True)
if __name__ == '__main__':
    for method in ('spawn', 'fork', 'forkserver'):
        with mp.get_context(method).Pool(1) as pool:
            print(pool.map(work, [Task(1)]), flush=True)
""",
    "names": """\
import sys
x: int = 1
print(__annotations__, [n for n in vars(sys.modules['builtins']) if 'device' in n])
print(eval('__file__'), locals() is globals(), sys.gettrace(), __builtins__.len)
""",
    "recursion": "def f(n):\n    return n and f(n - 1)\nprint(f(900))",
    "exec": "exec(\"print(__name__)\\nraise ValueError('inside')\")",
}


@pytest.mark.parametrize("name", INSIDES)
def test_what_a_program_finds(name: str, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(INSIDES[name])
    same([str(PROGRAM)], tmp_path, "first\nsecond\nthird")
    if name == "spawn":
        same(["-m", "program"], tmp_path)


def test_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("# coding: latin-1\nprint('é', ascii('é'))".encode("latin-1"))
    (tmp_path / "b.py").write_bytes(b"\xef\xbb\xbfprint(ascii('\xc3\xa9'), end='\\r\\n')\r\n")
    assert "\\xe9" in same(["a.py"], tmp_path)[1]
    assert "\\xe9" in same(["b.py"], tmp_path)[1]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_standard_streams_that_are_closed(closed: str, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("import sys\nprint(sys.stdin is None)\nsys.exit('ended')")
    path = os.pathsep.join(filter(None, sys.path))
    python, both = f"PYTHONPATH={path} {sys.executable}", []
    for words in ("program.py", "-m devicecore run program.py"):
        command = ["sh", "-c", f"{python} {words} {closed}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        both.append((done.returncode, done.stdout, done.stderr))
    assert both[0] == both[1]


def test_nothing_is_written_beside_a_script(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("print(1)")
    ours([str(PROGRAM)], tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / PROGRAM]


def test_without_a_plan_little_is_imported(tmp_path: Path) -> None:
    names = "devicecore.migrate", "numpy", "torch", "cv2", "multiprocessing", "asyncio", "pickle"
    (tmp_path / PROGRAM).write_text(f"import sys\nprint([*map(sys.modules.get, {names})])")
    assert ours([str(PROGRAM)], tmp_path) == (0, f"{[None] * len(names)}\n", "")
