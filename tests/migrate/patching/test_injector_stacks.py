"""Several injectors on one function, others that replace it, and modules that are reloaded."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.migrate.patching.tracker import SparseContextTracker
from tests.migrate.patching.patches import SOURCE, Log, injector_of

if TYPE_CHECKING:
    from devicecore.migrate.patching.patch_stack import Wrapper

pytestmark = pytest.mark.usefixtures("no_trace")


def test_stacked_wrappers_call_each_other_and_are_linked_anew(made: Any) -> None:
    order: list[Any] = []
    logs = [Log(name) for name in "abc"]
    for log in logs:
        log.calls = order
    first, second, third = (injector_of((made, "plain"), log=log) for log in logs)
    original = made.plain
    for each in (first, second, third):
        each.apply_all()
    assert made.plain(1) == 6
    assert order == ["c", "b", "a"]
    assert made.plain.__wrapped__ is original
    order.clear()
    second.restore_all()
    assert made.plain(1) == 6
    assert order == ["c", "a"]
    order.clear()
    third.restore_all()
    first.restore_all()
    assert made.plain is original


def test_one_injector_may_patch_a_function_twice(made: Any) -> None:
    original = made.plain
    log = Log()
    with injector_of((made, "plain"), (made, "plain"), log=log):
        made.plain(1)
    assert log.calls == [(1,)] * 2
    assert made.plain is original


def test_a_function_that_is_patched_by_two_of_its_names(made: Any, write: Any) -> None:
    write(made_c="from made_a import plain as p")
    other: Any = importlib.import_module("made_c")
    original = made.plain
    log = Log("x")
    one, two = injector_of((made, "plain"), log=log), injector_of((other, "p"), log=log)
    one.apply_all()
    two.apply_all()
    assert made.plain is other.p
    assert other.p(1) == 6
    assert log.calls == ["x", "x"]
    one.restore_all()
    assert made.plain is other.p is not original
    two.restore_all()
    assert made.plain is other.p is original


def test_a_wrapper_that_somebody_kept_knows_that_it_is_not_in_use(made: Any) -> None:
    log = Log()
    with injector_of((made, "plain"), log=log):
        kept = made.plain
    assert kept(1) == 6
    assert log.calls == []


def test_wrappers_that_somebody_kept_call_the_function_and_no_others(made: Any) -> None:
    links: list[Any] = []

    def remembering(below: Wrapper) -> Any:
        links.append(below)
        return Log()(below)

    original = made.plain
    lower = injector_of((made, "plain"), log=remembering)
    upper = injector_of((made, "plain"), log=remembering)
    with lower:
        with upper:
            assert links[1].target is not original
        assert [each.target for each in links] == [original, original]
        assert [each.active for each in links] == [True, False]
    assert [each.active for each in links] == [False, False]


def test_applying_is_counted_and_a_surplus_restore_does_nothing(made: Any) -> None:
    injector = injector_of((made, "plain"))
    original = made.plain
    injector.restore_all()
    injector.apply_all()
    with injector:
        wrapper = made.plain
    assert made.plain is wrapper
    injector.restore_all()
    assert made.plain is original
    injector.restore_all()
    assert not injector.is_applied
    with injector:
        assert made.plain is not original
    assert made.plain is original


def test_a_function_that_is_added_while_the_others_are_patched(made: Any) -> None:
    injector = injector_of((made, "plain"))
    original = made.steps
    with injector:
        with pytest.raises(AttributeError, match=r"made_a\.nothing"):
            injector.add(made, "nothing", Log())
        injector.add(made, "later", lambda below: SparseContextTracker().tracked(below, ("l",)))
        assert made.later.__wrapped__ is not made.later
    assert made.steps is original
    with injector:
        assert hasattr(made.later, "__wrapped__")
    assert not hasattr(made.later, "__wrapped__")


def test_what_others_have_put_there_since_is_left(made: Any) -> None:
    original = made.plain
    injector = injector_of((made, "plain"), (made.Model, "fixed"), (made.Model, "forward"))
    fixed = made.Model.fixed
    injector.apply_all()
    theirs = made.plain = lambda x: "theirs"
    del made.Model.forward
    with pytest.warns(RuntimeWarning, match="made_a.plain is left as it is: the function") as seen:
        injector.restore_all()
    assert "made_a.Model.forward is left as it is: nothing is there now" in str(seen[0].message)
    assert (made.plain, made.Model.fixed) == (theirs, fixed)
    assert theirs is not original
    assert "forward" not in vars(made.Model)


def test_others_that_patch_around_us_and_leave_in_order(made: Any, monkeypatch: Any) -> None:
    original = made.plain
    with injector_of((made, "plain")), monkeypatch.context() as patch:
        patch.setattr(made, "plain", lambda x: "theirs")
        assert made.plain(1) == "theirs"
    assert made.plain is original


def test_others_that_put_a_wrapper_back_which_is_not_in_use_any_more(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = made.plain
    lower, upper = injector_of((made, "plain")), injector_of((made, "plain"))
    with lower:
        upper.apply_all()
        with monkeypatch.context() as patch:
            patch.setattr(made, "plain", lambda x: "theirs")
            with pytest.warns(RuntimeWarning, match="is left as it is"):
                upper.restore_all()
        assert made.plain is not original
    assert made.plain is original


def test_others_that_put_the_function_back_where_it_is_patched_again(made: Any) -> None:
    original = made.plain
    first, second = injector_of((made, "plain")), injector_of((made, "plain"))
    first.apply_all()
    made.plain = original
    second.apply_all()
    assert made.plain is not original
    first.restore_all()  # warns of nothing: the place is ours again
    second.restore_all()
    assert made.plain is original


def test_what_others_have_put_there_can_be_patched_too(made: Any) -> None:
    first, second = injector_of((made, "plain")), injector_of((made, "plain"), log=Log())
    first.apply_all()
    theirs = made.plain = lambda x: "theirs"
    second.apply_all()
    assert made.plain(1) == "theirs"
    with pytest.warns(RuntimeWarning, match="made_a.plain is left as it is"):
        first.restore_all()
    second.restore_all()
    assert made.plain is theirs


def test_a_module_that_is_reloaded_is_patched_again(made: Any, write: Any) -> None:
    write(made_c="from made_a import plain")
    importer: Any = importlib.import_module("made_c")
    log = Log()
    old, old_class = made.plain, made.Model
    injector = injector_of((made, "plain"), (made.Model, "forward"), log=log)
    injector.apply_all()
    write(made_a=SOURCE.replace("x + y + z", "x * 100"))
    importlib.reload(made)
    assert made.plain(1) == 100
    assert made.Model().forward(2) == 6
    assert importer.plain(1) == 6  # whoever imported it before has the old one, as ever
    assert len(log.calls) == 3
    new = made.plain.__wrapped__
    injector.restore_all()
    assert made.plain is new
    assert importer.plain is old
    assert made.plain(1) == 100
    assert not hasattr(made.Model.forward, "__wrapped__")
    assert not hasattr(old_class.forward, "__wrapped__")
    assert len(log.calls) == 3


def test_a_reload_that_makes_nothing_anew_patches_nothing_twice(write: Any) -> None:
    write(made_b="if 'plain' not in globals():\n    def plain(x):\n        return x")
    module: Any = importlib.import_module("made_b")
    log = Log()
    with injector_of((module, "plain"), log=log):
        wrapper = module.plain
        importlib.reload(module)
        assert module.plain is wrapper
        module.plain(1)
    assert log.calls == [(1,)]


def test_two_injectors_see_a_reload_and_keep_their_order(made: Any) -> None:
    order: list[Any] = []
    logs = [Log(name) for name in "ab"]
    for log in logs:
        log.calls = order
    first, second = (injector_of((made, "plain"), log=log) for log in logs)
    first.apply_all()
    second.apply_all()
    importlib.reload(made)
    importlib.reload(made)
    assert made.plain(1) == 6
    assert order == ["b", "a"]
    first.restore_all()
    second.restore_all()
    assert made.plain(1) == 6
    assert len(order) == 2
    assert not hasattr(made.plain, "__wrapped__")


def test_a_module_that_is_imported_anew(made: Any) -> None:
    log = Log()
    with injector_of((made, "plain"), log=log):
        del sys.modules["made_a"]
        again: Any = importlib.import_module("made_a")
        assert again is not made
        again.plain(1)
        made.plain(1)
    assert len(log.calls) == 2
    assert not hasattr(again.plain, "__wrapped__")
    assert not hasattr(made.plain, "__wrapped__")


def test_a_reload_without_the_function_is_a_warning(made: Any, write: Any) -> None:
    injector = injector_of((made.Model, "forward"), (made, "plain"))
    with injector:
        write(made_a="def plain(x):\n    return x")
        del made.Model
        with pytest.warns(RuntimeWarning, match=r"executed anew, and is without Model\.forward"):
            importlib.reload(made)
        assert hasattr(made.plain, "__wrapped__")
    assert not hasattr(made.plain, "__wrapped__")
