"""Originals and wrappers are pickled while functions are patched, and loaded anywhere."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import cv2
import pytest

from devicecore.migrate.patching import pickling
from devicecore.migrate.patching.injector import PatchInjector
from devicecore.migrate.patching.pickling import ORIGINALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from devicecore.migrate.patching.patch_stack import Wrapper

SOURCE = """
import functools

def plain(x):
    return x + 1

class Outer:
    class Inner:
        def method(self):
            return "method"

        def __call__(self):
            return "called"

        @staticmethod
        def fixed():
            return "fixed"

class Holder:
    def __init__(self):
        self.captured = [plain, functools.partial(plain, 1), Outer.Inner.method]
"""

PROTOCOLS = [
    pytest.param(dumps, protocol, id=f"{name}-{protocol}")
    for name, dumps in (("C", pickle.dumps), ("Python", pickle._dumps))  # type: ignore[attr-defined]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
]


def passing_on(below: Wrapper) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return below(*args, **kwargs)

    return wrapper


@pytest.fixture(autouse=True)
def _no_trace() -> Iterator[None]:
    yield
    assert ORIGINALS._kept == {}


@pytest.fixture
def made(write: Any) -> Any:
    write({"made_p/__init__": "", "made_p/mod": SOURCE})
    return importlib.import_module("made_p.mod")


def patched(*places: tuple[Any, str]) -> PatchInjector:
    injector = PatchInjector()
    for owner, name in places:
        injector.add(owner, name, passing_on)
    return injector


def in_new_process(code: str, folder: Path | None = None) -> str:
    """Return what *code* prints, in a process that has patched nothing."""
    paths = [str(folder)] if folder else []
    program = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("dumps", "protocol"), PROTOCOLS)
def test_what_captured_a_c_function_before_is_pickled(dumps: Any, protocol: int) -> None:
    original = cv2.resize
    captured = [partial(original, dsize=(2, 2)), {"f": original}]
    with patched((cv2, "resize")):
        assert cv2.resize is not original
        written = dumps(captured, protocol)
        loaded = pickle.loads(written)
        assert loaded[0].func is loaded[1]["f"] is original
    assert f"{pickling.__name__}.cv2" not in sys.modules
    assert "cv2" not in vars(pickling)
    assert pickle.loads(written)[1]["f"] is original
    assert original.__module__ is None
    ORIGINALS.discard(original, object())  # a surplus one does nothing


def test_a_new_process_that_patches_nothing_loads_it() -> None:
    original = cv2.resize
    with patched((cv2, "resize")):
        written = pickle.dumps((original, cv2.resize))
    code = f"import pickle; fs = pickle.loads({written!r})\n"
    code += "import cv2; print([f is cv2.resize for f in fs])"
    assert in_new_process(code) == "[True, True]"


def test_other_functions_of_the_module_are_pickled_as_ever() -> None:
    before = pickle.dumps(cv2.blur)
    with patched((cv2, "resize")):
        assert pickle.dumps(cv2.blur) == before
        code = f"import pickle; pickle.loads({pickle.dumps(cv2.resize)!r})\n"
        code += "import sys; print('devicecore' in sys.modules)"
    assert in_new_process(code) == "False"  # the wrapper is written as cv2's own


@pytest.mark.parametrize("protocol", range(4, pickle.HIGHEST_PROTOCOL + 1))
def test_python_functions_and_methods(made: Any, tmp_path: Path, protocol: int) -> None:
    inner = made.Outer.Inner
    holder = made.Holder()
    holder.captured += [inner.fixed, inner.__call__]
    home = made.plain.__module__
    everything = [(made, "plain"), *((inner, name) for name in ("method", "fixed", "__call__"))]
    with patched(*everything):
        assert made.plain is not holder.captured[0]
        written = pickle.dumps(holder, protocol)
        loaded = pickle.loads(written).captured
        assert loaded[0] is holder.captured[0]
        assert loaded[1].func is holder.captured[0]
        assert loaded[2:] == holder.captured[2:]
    assert made.plain.__module__ == inner.fixed.__module__ == home
    code = f"import pickle; c = pickle.loads({written!r}).captured\n"
    code += "import made_p.mod as m; i = m.Outer.Inner\n"
    code += "print(c[0] is m.plain, c[2:] == [i.method, i.fixed, i.__call__], c[1]())"
    assert in_new_process(code, tmp_path) == "True True 2"


def test_a_class_that_is_patched_in_part_is_found_as_a_whole(made: Any) -> None:
    inner = made.Outer.Inner
    method = inner.method
    with patched((inner, "method")):
        second = importlib.import_module(method.__module__)
        assert second.Outer.Inner.method is method
        assert second.Outer.Inner.fixed is inner.fixed
        assert second.plain is made.plain
        with pytest.raises(AttributeError, match="nothing"):
            _ = second.Outer.Inner.nothing
        assert not hasattr(second, "__file__")


def test_a_spawned_child_gets_a_captured_original_and_a_wrapper(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, cv2, numpy
from devicecore.migrate.patching.injector import PatchInjector

def preprocess(image):
    return image * 2

def work(functions, pipe):
    resize, wrapper, own = functions
    image = numpy.zeros((4, 4, 3), numpy.uint8)
    same = resize is cv2.resize and wrapper is cv2.resize and own is preprocess
    pipe.send((same, resize(image, (2, 2)).shape, own(3)))

def passing_on(below):
    def wrapper(*args, **kwargs):
        return below(*args, **kwargs)
    return wrapper

if __name__ == "__main__":
    import __main__
    captured = cv2.resize, preprocess
    injector = PatchInjector()
    injector.add(cv2, "resize", passing_on)
    injector.add(__main__, "preprocess", passing_on)
    injector.apply_all()
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        receiving, sending = context.Pipe()
        functions = captured[0], cv2.resize, captured[1]
        child = context.Process(target=work, args=(functions, sending))
        child.start()
        print(receiving.recv())
        child.join()
""")
    done = subprocess.run([sys.executable, program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["(True, (2, 2, 3), 6)"] * 2


def test_a_wrapper_that_was_captured_is_pickled_when_it_is_gone(made: Any, tmp_path: Path) -> None:
    injector = patched((made, "plain"), (made.Outer.Inner, "method"))
    with injector:
        captured = [made.plain, made.Outer.Inner.method]
    assert captured[0] is not made.plain
    written = pickle.dumps(captured)
    loaded = pickle.loads(written)
    assert [each.__name__ for each in loaded] == ["plain", "method"]
    assert loaded[0](1) == 2
    code = f"import pickle; c = pickle.loads({written!r})\n"
    code += "import made_p.mod as m; print(c == [m.plain, m.Outer.Inner.method])"
    assert in_new_process(code, tmp_path) == "True"
    captured.clear()
    loaded.clear()
    assert pickle.loads(written) == [made.plain, made.Outer.Inner.method]


def test_a_wrapper_below_another_is_pickled(made: Any) -> None:
    lower, upper = patched((made, "plain")), patched((made, "plain"))
    with lower:
        below = made.plain
        with upper:
            assert pickle.loads(pickle.dumps([below, made.plain])) == [below, made.plain]
        assert made.plain is below
        assert below.__module__ == "made_p.mod"
        assert pickle.loads(pickle.dumps(below)) is below


def test_functions_that_could_not_be_pickled_still_cannot(made: Any) -> None:
    made.unnamed = lambda: None
    home = made.unnamed.__module__
    original = made.unnamed
    with patched((made, "unnamed")):
        assert original.__module__ == home
        assert made.unnamed() is None
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pickle.dumps(original)
    assert made.unnamed is original


def test_the_address_survives_a_cleared_cache_of_finders(made: Any) -> None:
    plain = made.plain
    sys.path_importer_cache.clear()
    with patched((made, "plain")):
        importlib.invalidate_caches()
        assert pickle.loads(pickle.dumps(plain)) is plain


def test_unpickling_when_the_module_is_gone_is_an_ordinary_error(made: Any) -> None:
    plain = made.plain
    with patched((made, "plain")):
        written = pickle.dumps(plain).replace(b"made_p", b"gone_p")
    with pytest.raises(ModuleNotFoundError, match="gone_p"):
        pickle.loads(written)


class Untold:
    """A function, in the eyes of pickle, that cannot be told a module."""

    __slots__ = ()
    __module__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> str:
        if name == "__qualname__":  # in the body of the class it would be the class's
            return "untold"
        raise AttributeError(name)

    def __call__(self) -> str:
        return "called"

    def __reduce__(self) -> str:
        return "untold"


def test_a_function_that_cannot_be_told_is_found_by_pickles_own_search(made: Any) -> None:
    made.untold = Untold()
    injector = PatchInjector()
    injector.add(made, "untold", passing_on)
    original = made.untold
    second = f"{pickling.__name__}.made_p:mod"
    with injector:
        assert made.untold() == "called"
        assert second in sys.modules
        written = pickle.dumps(original)
        assert second.encode() in written
        assert pickle.loads(written) is original
    assert second not in sys.modules
    assert pickle.loads(written) is original
