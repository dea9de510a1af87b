"""What can be patched, and what wrappers look like."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import math
import pickle
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest

from devicecore.migrate.patching.injector import PatchInjector
from devicecore.migrate.patching.tracker import SparseContextTracker
from tests.migrate.patching.patches import Log, contents, injector_of

if TYPE_CHECKING:
    from devicecore.migrate.patching.patch_stack import Wrapper

pytestmark = pytest.mark.usefixtures("no_trace")


def test_a_c_function_of_a_module() -> None:
    log = Log()
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    expected = cv2.resize(image, (2, 2))
    with injector_of((cv2, "resize"), log=log):
        assert np.array_equal(cv2.resize(image, (2, 2)), expected)
    assert log.calls == [(image, (2, 2))]
    cv2.resize(image, (2, 2))
    assert len(log.calls) == 1


@pytest.mark.parametrize(
    ("owner", "name", "call", "expected"),
    [
        ("made_a", "plain", lambda m: m.plain(1), 6),
        ("Model", "method", lambda m: m.Model().method(1), ("Model", "Base", 1)),
        ("Base", "method", lambda m: m.Model().method(1), ("Model", "Base", 1)),
        ("Heir", "method", lambda m: m.Heir().method(1), ("Model", "Base", 1)),
        ("Model", "fixed", lambda m: m.Model().fixed(1) + m.Model.fixed(1), 4),
        ("Heir", "fixed", lambda m: m.Heir().fixed(1) + m.Heir.fixed(1), 4),
        ("Model", "of_class", lambda m: m.Heir.of_class(1), ("Heir", 1)),
        ("Heir", "of_class", lambda m: m.Heir().of_class(1), ("Heir", 1)),
        ("Base", "__call__", lambda m: m.Model()(2), 6),
        ("Model", "__call__", lambda m: m.Heir()(2), 6),
        ("Model", "forward", lambda m: m.Model()(2), 6),
        ("made_a", "steps", lambda m: list(m.steps(2)), [0, 1]),
        ("made_a", "later", lambda m: asyncio.run(m.later(1)), 1),
    ],
)
def test_functions_and_methods(made: Any, owner: str, name: str, call: Any, expected: Any) -> None:
    owners = made, made.Base, made.Model, made.Heir
    before = contents(*owners)
    seen = []

    def counting(below: Wrapper) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return below.target(*args, **kwargs)

        async def later(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return await below.target(*args, **kwargs)

        def steps(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            yield from below.target(*args, **kwargs)

        return {"later": later, "steps": steps}.get(name, wrapper)

    with injector_of((getattr(made, owner, made), name), log=counting):
        assert call(made) == expected
    assert set(seen) == {name}
    assert contents(*owners) == before
    times = len(seen)
    assert call(made) == expected
    assert len(seen) == times


def test_what_is_inherited_is_patched_for_that_class_only(made: Any) -> None:
    log = Log()
    with injector_of((made.Heir, "forward"), log=log):
        made.Model().forward(1)
        assert log.calls == []
        made.Heir().forward(1)
        assert len(log.calls) == 1
        assert "forward" in vars(made.Heir)
    assert "forward" not in vars(made.Heir)


@pytest.mark.parametrize("is_base_first", [True, False])
@pytest.mark.parametrize("is_base_left_first", [True, False])
def test_a_method_that_is_patched_in_a_class_and_its_base(
    made: Any, is_base_first: bool, is_base_left_first: bool
) -> None:
    base, heir = Log("base"), Log("heir")
    before = contents(made.Model, made.Heir)
    both = [
        injector_of((made.Model, "forward"), log=base),
        injector_of((made.Heir, "forward"), log=heir),
    ]
    for each in both if is_base_first else reversed(both):
        each.apply_all()
    assert made.Heir().forward(1) == 3
    assert heir.calls + base.calls == ["heir", "base"]
    first, last = both if is_base_left_first else both[::-1]
    first.restore_all()
    assert made.Heir().forward(1) == 3
    assert (heir if is_base_left_first else base).calls == [
        "heir" if is_base_left_first else "base"
    ] * 2
    last.restore_all()
    assert made.Heir().forward(1) == 3
    assert len(heir.calls + base.calls) == 3
    assert contents(made.Model, made.Heir) == before


def test_a_c_function_in_a_class_does_not_become_a_method() -> None:
    class Vision:
        root: Any = math.sqrt

    before = vars(Vision)["root"]
    with injector_of((Vision, "root")):
        assert Vision.root(4.0) == Vision().root(4.0) == 2.0
    assert vars(Vision)["root"] is before


def test_what_a_module_gives_only_when_asked(write: Any) -> None:
    write(made_b="def __getattr__(name):\n    import math\n    return getattr(math, name)")
    module = importlib.import_module("made_b")
    before = contents(module)
    log = Log()
    with injector_of((module, "sqrt"), log=log):
        assert module.sqrt(4.0) == 2.0
    assert log.calls == [(4.0,)]
    assert contents(module) == before
    assert module.sqrt is math.sqrt
    with injector_of((math, "sqrt"), (module, "sqrt")):
        assert module.sqrt(4.0) == 2.0
    assert contents(module) == before


@pytest.mark.parametrize(
    ("owner", "name", "error", "text"),
    [
        ("made", "nothing", AttributeError, "there is no made_a.nothing"),
        ("Model", "nothing", AttributeError, "there is no made_a.Model.nothing"),
        ("made", "Model", TypeError, "made_a.Model is a class; patch its methods"),
        ("Model", "factor", TypeError, "made_a.Model.factor is no function"),
        ("dict", "get", TypeError, "immutable type 'dict'"),
        ("instance", "method", TypeError, "is neither a module nor a class"),
    ],
)
def test_what_cannot_be_patched(
    made: Any, owner: str, name: str, error: type[Exception], text: str
) -> None:
    owners = {"made": made, "Model": made.Model, "dict": dict, "instance": made.Model()}
    before = contents(made, made.Model)
    injector = injector_of((made, "plain"), (owners[owner], name), (made.Model, "fixed"))
    with pytest.raises(error, match=text):
        injector.apply_all()
    assert not injector.is_applied
    assert contents(made, made.Model) == before


def test_all_or_nothing_when_making_a_wrapper_fails(made: Any) -> None:
    def fail(below: Wrapper) -> Any:
        raise ZeroDivisionError

    other = injector_of((made, "plain"))
    with other:
        before = contents(made)
        injector = injector_of((made, "plain"), (cv2, "resize"))
        injector.add(made.Model, "forward", fail)
        with pytest.raises(ZeroDivisionError):
            injector.apply_all()
        assert contents(made) == before


@pytest.mark.parametrize(
    ("name", "wrapper", "text"),
    [
        ("plain", len, "the wrapper of made_a.plain is <built-in function len>"),
        ("later", lambda *a: None, "is a plain function, but that is a coroutine function"),
        ("steps", lambda *a: None, "is a plain function, but that is a generator function"),
        ("stream", lambda *a: None, "but that is an asynchronous generator function"),
    ],
)
def test_a_wrapper_of_another_kind_is_refused(
    made: Any, name: str, wrapper: Any, text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        injector_of((made, name), log=lambda below: wrapper).apply_all()


def test_a_wrapper_looks_like_the_function(made: Any) -> None:
    original = made.plain
    signature = inspect.signature(original)
    source = inspect.getsource(original)
    with injector_of((made, "plain"), (made.Model, "forward")):
        wrapper = made.plain
        names = [wrapper.__name__, wrapper.__qualname__, wrapper.__module__, wrapper.__doc__]
        assert names == ["plain", "plain", "made_a", "Add them."]
        assert wrapper.mark == "of the user"
        assert wrapper.__wrapped__ is original
        assert wrapper.__annotations__ == original.__annotations__
        assert inspect.signature(wrapper) == signature
        assert inspect.isfunction(wrapper)
        assert inspect.getsource(wrapper) == source
        assert pickle.loads(pickle.dumps(wrapper)) is wrapper
        forward = made.Model.forward
        assert forward.__qualname__ == "Model.forward"
        assert str(inspect.signature(made.Model().forward)) == "(x)"
        assert inspect.ismethod(made.Model().forward)
        written = pickle.dumps(made.Model().forward)
        assert pickle.loads(written)(2) == 6
    assert pickle.loads(written)(2) == 6
    assert original.__module__ == "made_a"


def test_a_wrapper_of_a_c_function_looks_like_it() -> None:
    signature = inspect.signature(math.sqrt)
    with injector_of((math, "sqrt"), (cv2, "resize")):
        root: Any = math.sqrt
        assert root.__signature__ == inspect.signature(root) == signature
        assert (root.__name__, root.__module__, root.__qualname__) == ("sqrt", "math", "sqrt")
        resize: Any = cv2.resize
        assert (resize.__name__, resize.__module__, resize.__qualname__) == (
            "resize",
            "cv2",
            "resize",
        )
        assert resize.__doc__ == resize.__wrapped__.__doc__
        with pytest.raises(ValueError, match="no signature found"):  # as of the original
            inspect.signature(resize)
    assert math.sqrt.__module__ == "math"


def test_tracked_wrappers_stay_what_the_functions_are(made: Any) -> None:
    tracker = SparseContextTracker()
    injector = PatchInjector()
    for name in ("plain", "steps", "later", "stream"):
        frame = (f"made_a:{name}",)
        injector.add(made, name, functools.partial(_tracking, tracker, frame))
    with injector:
        assert inspect.isgeneratorfunction(made.steps)
        assert inspect.iscoroutinefunction(made.later)
        assert inspect.isasyncgenfunction(made.stream)
        assert not inspect.isgeneratorfunction(made.plain)
        assert list(made.steps(3)) == [0, 1, 2]
        assert asyncio.run(made.later(5)) == 5
        assert asyncio.run(_collected(made.stream(2))) == [0, 1]
        assert made.plain.__name__ == "plain"
    assert tracker.current() is tracker.root
    assert {key for node in tracker.root.children for key in node} == {
        f"made_a:{name}" for name in ("plain", "steps", "later", "stream")
    } - {"made_a:plain"}


def _tracking(tracker: SparseContextTracker, frame: tuple[str, ...], below: Wrapper) -> Any:
    return tracker.tracked(below, frame)


async def _collected(stream: Any) -> list[Any]:
    return [each async for each in stream]
