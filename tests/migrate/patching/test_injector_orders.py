"""Threads, processes, memory, and any order of applying and restoring."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
import threading
import types
import warnings
import weakref
from typing import Any

import cv2
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from devicecore.migrate.patching.patch_stack import PATCH_STACKS
from tests.migrate.patching.patches import SOURCE, Log, contents, injector_of, run

pytestmark = pytest.mark.usefixtures("no_trace")


@pytest.mark.long
def test_threads_that_call_while_others_apply_and_restore(made: Any) -> None:
    original = made.plain
    stop = threading.Event()
    answers: set[Any] = set()

    def call() -> None:
        while not stop.is_set():
            answers.add(made.plain(1))

    def patch() -> None:
        injector = injector_of((made, "plain"), (made.Model, "forward"))
        for _ in range(15):
            with injector:
                answers.add(made.Model().forward(2))

    callers = [threading.Thread(target=call) for _ in range(2)]
    patchers = [threading.Thread(target=patch) for _ in range(3)]
    for thread in (*callers, *patchers):
        thread.start()
    for thread in patchers:
        thread.join()
    stop.set()
    for thread in callers:
        thread.join()
    assert answers == {6}
    assert made.plain is original


def test_a_thread_that_reloads_while_others_apply_and_restore(made: Any, write: Any) -> None:
    write(made_lazy="def __getattr__(name):\n    import made_a\n    return made_a.plain")
    lazy = importlib.import_module("made_lazy")

    def reload() -> None:
        for _ in range(20):
            importlib.reload(made)

    threads = [threading.Thread(target=reload) for _ in range(2)]
    with warnings.catch_warnings():
        # What is restored in the middle of a reload finds that others have replaced it.
        warnings.filterwarnings("ignore", ".*is left as it is", RuntimeWarning)
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            with injector_of((made, "plain"), (made.Model, "forward"), (lazy, "plain")):
                assert lazy.plain(1) == 6
        for thread in threads:
            thread.join()
    assert not hasattr(made.plain, "__wrapped__")
    assert not hasattr(made.Model.forward, "__wrapped__")
    assert lazy.plain is made.plain


def test_a_forked_child_restores_though_a_thread_held_the_lock(in_fork: Any) -> None:
    injector = injector_of((cv2, "resize"))
    original = cv2.resize
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with PATCH_STACKS.lock:
            taken.set()
            done.wait()

    def child() -> bool:
        injector.restore_all()
        return cv2.resize is original

    with injector:
        thread = threading.Thread(target=hold)
        thread.start()
        taken.wait()
        try:
            assert in_fork(child)
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "import gc; del injector; gc.collect()"])
def test_an_injector_is_restored_when_the_interpreter_exits(tmp_path: Any, end: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"""
import atexit, cv2, sys
from devicecore.migrate.patching.injector import PatchInjector

original = [cv2.resize]
atexit.register(lambda: print("back", cv2.resize is original[0]))
injector = PatchInjector()
injector.add(cv2, "resize", lambda below: lambda *args, **kwargs: below(*args, **kwargs))
injector.apply_all()
atexit.register(lambda: print("patched", cv2.resize is not original[0]))
{end}
""")
    assert run(program) == ["patched True", "back True"]


def test_an_injector_that_is_restored_leaves_nothing_to_do_at_exit(made: Any) -> None:
    injector = injector_of((made, "plain"))
    with injector:
        pass
    alive = [each for each in gc.get_referrers(injector) if not inspect.isframe(each)]
    assert alive == []


def test_a_wrapper_goes_when_it_is_taken_off(made: Any) -> None:
    gc.disable()
    try:
        with injector_of((made, "plain")):
            wrapper = weakref.ref(made.plain)
        assert wrapper() is None
    finally:
        gc.enable()


def test_patching_and_restoring_keeps_nothing(made: Any) -> None:
    def once() -> None:
        with injector_of((made, "plain"), (made.Model, "forward"), (made.Heir, "fixed")):
            pass

    def count() -> int:
        gc.collect()
        kinds = [type(each) for each in gc.get_objects()]
        ours = sum("devicecore.migrate" in str(kind.__module__) for kind in kinds)
        functions = [each for each in gc.get_objects() if type(each) is types.FunctionType]
        return ours + sum("made_a" in str(each.__module__) for each in functions)

    before = count()
    for _ in range(5):
        once()
    assert count() == before


class Orders(RuleBasedStateMachine):
    """Several injectors on the same names, applied, restored and reloaded in any order."""

    def __init__(self) -> None:
        super().__init__()
        source = type(sys)("made_order")
        exec(SOURCE, vars(source))
        sys.modules["made_order"] = self.module = source
        self.user = type(sys)("made_user")
        vars(self.user)["p"] = source.plain
        sys.modules["made_user"] = self.user
        self.owners = source, self.user, source.Base, source.Model, source.Heir
        self.before = contents(*self.owners)
        self.original = source.plain
        self.applied: list[str] = []
        self.calls: list[str] = []
        self.counts = dict.fromkeys("abcd", 0)
        self.injectors = {}
        places = {
            "a": [(source, "plain"), (source.Heir, "forward")],
            "b": [(source.Model, "forward"), (source, "plain"), (source.Heir, "fixed")],
            "c": [(self.user, "p"), (source.Model, "fixed"), (source.Heir, "forward")],
            "d": [(source, "plain"), (source.Base, "method"), (source.Heir, "method")],
        }
        for name, those in places.items():
            log = Log(name)
            log.calls = self.calls
            self.injectors[name] = injector_of(*those, log=log)

    @rule(name=st.sampled_from("abcd"))
    def apply(self, name: str) -> None:
        self.injectors[name].apply_all()
        self.counts[name] += 1
        if name not in self.applied:
            self.applied.append(name)

    @rule(name=st.sampled_from("abcd"))
    def restore(self, name: str) -> None:
        self.injectors[name].restore_all()
        self.counts[name] = max(self.counts[name] - 1, 0)
        if not self.counts[name] and name in self.applied:
            self.applied.remove(name)

    @rule(name=st.sampled_from("abcd"))
    def fail_to_add(self, name: str) -> None:
        if self.counts[name]:
            with pytest.raises(AttributeError):
                self.injectors[name].add(self.module, "nothing", Log())

    @rule()
    def bind(self) -> None:
        name = f"p{len(vars(self.user))}"
        setattr(self.user, name, self.module.plain)
        self.before[1].append((name, self.original))

    @invariant()
    def all_names_are_bound_to_the_same(self) -> None:
        bound = [value for name, value in vars(self.user).items() if name.startswith("p")]
        assert [value for value in bound if value is not self.module.plain] == []

    @invariant()
    def calls_pass_all_that_are_applied(self) -> None:
        for function in (self.module.plain, self.user.p):
            self.calls.clear()
            assert function(1) == 6
            assert self.calls == self.applied[::-1]
        self.calls.clear()
        assert self.module.Heir().forward(2) == 6
        heirs = [name for name in self.applied[::-1] if name in "ac"]
        assert self.calls == [*heirs, *(name for name in self.applied if name == "b")]
        self.calls.clear()
        assert self.module.Heir().method(1) == ("Model", "Base", 1)
        assert self.calls == ["d"] * 2 * self.applied.count("d")
        self.calls.clear()
        assert self.module.Heir.fixed(1) + self.module.Model.fixed(1) == 4
        assert sorted(self.calls) == sorted(
            self.applied.count("b") * ["b"] + self.applied.count("c") * ["c", "c"]
        )

    @invariant()
    def nothing_is_left_when_none_is_applied(self) -> None:
        if not self.applied:
            assert contents(*self.owners) == self.before
            assert PATCH_STACKS._all == []

    def teardown(self) -> None:
        for name, injector in self.injectors.items():
            for _ in range(self.counts[name]):
                injector.restore_all()
        self.applied.clear()
        self.nothing_is_left_when_none_is_applied()
        del sys.modules["made_order"], sys.modules["made_user"]


TestOrders = Orders.TestCase
TestOrders.settings = settings(max_examples=40, stateful_step_count=25)
