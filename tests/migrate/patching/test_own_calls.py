"""Plans that name functions which devicecore itself calls: only the program's calls are theirs."""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

import devicecore.cv  # noqa: E402 - after cv2
from devicecore.migrate import PipelineMigrator, StrategyRegistry  # noqa: E402
from devicecore.migrate.patching import own_calls  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = np.arange(144, dtype=np.uint8).reshape(12, 4, 3)
CALLS: dict[str, tuple[Any, ...] | None] = {
    "cv2.cvtColor": (IMAGE, cv2.COLOR_BGR2GRAY),
    "cv2.getNumThreads": (),
    "cv2.resize": (IMAGE, (8, 8)),
    "difflib.get_close_matches": ("a", ["ab", "b"]),
    "functools.reduce": (max, [1, 2]),
    "importlib.import_module": ("json",),
    "importlib.util.find_spec": ("json",),
    "inspect.signature": (pickle.dumps,),
    "json.dumps": ({},),
    "json.loads": ("{}",),
    "logging.getLogger": ("made",),
    "numpy.array": ([1, 2],),
    "numpy.asarray": ([1, 2],),
    "numpy.ascontiguousarray": (IMAGE,),
    "numpy.empty": None,
    "numpy.array_equal": (IMAGE, IMAGE),
    "numpy.result_type": (IMAGE, np.uint8),
    "numpy.zeros": (3,),
    "os.fspath": ("a",),
    "os.getpid": (),
    "os.stat": ("/",),
    "re.compile": ("a+",),
    "sys._getframe": None,
    "sys.exit": None,
    "sys.getrefcount": None,
    "sys.getsizeof": (1,),
    "threading.get_ident": (),
    "time.monotonic": None,
    "time.perf_counter": None,
    "time.time": None,
    "torch.as_tensor": ([1, 2],),
    "torch.from_numpy": (IMAGE,),
    "torch.is_tensor": (IMAGE,),
}


def at_address(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "strides") or hasattr(one, "stride"):
        return bool((one == other).all())
    return bool(one == other) or type(one) is type(other)


@pytest.mark.parametrize("how", [{"device": "cpu", "kernel": "torch"}, {"device": "cuda:0"}])
@pytest.mark.parametrize("name", CALLS)
def test_a_function_that_devicecore_uses(name: str, how: dict[str, str], no_trace: None) -> None:
    original, args = at_address(name), CALLS[name]
    expected = None if args is None else original(*args)
    flipped, resized = cv2.flip(IMAGE, 1), cv2.resize(IMAGE, (8, 8))
    with PipelineMigrator({name: how, "cv2.flip": how}, verify=2) as migrator:
        for _ in range(2):
            assert args is None or _same(at_address(name)(*args), expected)
            assert (cv2.flip(IMAGE, 1) == flipped).all()
            assert (devicecore.cv.resize(IMAGE, (8, 8)) == resized).all()
        rows = migrator.report().rows
    calls = {row.path.partition(":")[2]: row.calls for row in rows}
    if how["device"] == "cpu" or not torch.cuda.is_available():
        assert calls["flip"] == 2
    calls.pop("flip", None)
    if args is not None:
        times = 4 if name == "importlib.import_module" else 2  # the test itself uses it
        assert calls.pop(name.rpartition(".")[2]) == times
    assert calls == {}, "none of devicecore's own"
    assert at_address(name) is original


def test_examples_in_docstrings_are_programs() -> None:
    """They run with the names of a module of devicecore, whose own calls are none."""
    names = {"__name__": "devicecore.migrate.migrator", "cv2": cv2, "image": IMAGE}
    example = compile("cv2.flip(image, 1)", "<doctest example[0]>", "eval")
    own = compile("cv2.flip(image, 1)", devicecore.cv.__file__, "eval")
    with PipelineMigrator({"cv2.flip": {"device": "cpu", "kernel": "torch"}}) as migrator:
        eval(example, names)
        eval(own, names)
    assert [row.calls for row in migrator.report().rows] == [1]


def test_the_files_that_call_for_programs_are_there() -> None:
    assert all(map(os.path.isfile, own_calls._CALL_FOR_PROGRAMS))


def test_its_program_still_ends_and_reports(no_trace: None) -> None:
    """`sys` is also what the module with the second addresses calls something."""
    how = {"device": "cpu", "kernel": "torch"}
    wanted = ("sys.exit", "itertools.tee", "importlib.import_module")
    with PipelineMigrator(dict.fromkeys(wanted, how)):
        for name in wanted:
            function = at_address(name).__wrapped__
            assert pickle.loads(pickle.dumps(function)) is not None
        with pytest.raises(SystemExit):
            sys.exit(3)
    with PipelineMigrator({"cv2.flip": how}) as migrator:
        cv2.flip(IMAGE, 1)
    assert migrator.report().rows[0].migrated == 1


@pytest.mark.parametrize("how", [{"device": "cuda:9"}, {"device": "cpu", "kernel": "torch"}])
def test_stacked_migrators_and_logging(
    how: dict[str, str], caplog: pytest.LogCaptureFixture, no_trace: None
) -> None:
    """A wrapper calls the one below it for the program; what logging calls is no program's.

    That is also what devicecore logs while another migrator decides, or computes.
    """
    process = os.getpid()
    with (
        caplog.at_level(logging.DEBUG),
        PipelineMigrator({"os.getpid": how, "time.time": how, "time.time_ns": how}) as inner,
        PipelineMigrator({"os.getpid": how, "cv2.flip": how}) as outer,
    ):
        assert os.getpid() == process
        cv2.flip(IMAGE, 1)
    assert caplog.records
    calls = [{row.path: row.calls for row in each.report().rows} for each in (inner, outer)]
    assert calls == [{"posix:getpid": 1}, {"posix:getpid": 1, "cv2:flip": 1}]


def test_kernels_call_nothing_for_the_program(write: Callable[..., None]) -> None:
    """What a kernel calls, also by code that is not devicecore's, no other migrator migrates."""
    write(made_helper="import cv2\ndef turned(x): return cv2.flip(x, 1)\n")
    helper: Any = importlib.import_module("made_helper")
    registry = StrategyRegistry()
    registry.register("made_helper.turned")(lambda image: helper.turned.__wrapped__(image))  # noqa: PLW0108 - wrapped later
    how = {"device": "cpu", "kernel": "torch"}
    for order in (1, -1):
        flips = PipelineMigrator({"cv2.flip": how})
        turns = PipelineMigrator({"made_helper.turned": how}, registry)
        with ExitStack() as stack:
            for each in (flips, turns)[::order]:
                stack.enter_context(each)
            assert (helper.turned(IMAGE) == IMAGE[:, ::-1]).all()
        assert flips.report().rows == []
        assert [row.migrated for row in turns.report().rows] == [1]
