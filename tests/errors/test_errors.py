"""Errors: one tree, each one a builtin too, picklable, and in three parts."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from devicecore import errors
from devicecore.errors import DeviceCoreError, DeviceError, NoKernelError

# An example of each class, and the builtins that it is a kind of.
EXAMPLES: dict[type[DeviceCoreError], tuple[tuple[object, ...], tuple[type[Exception], ...]]] = {
    errors.InvalidDeviceNameError: (
        ("GPU 0", 3, "it has a blank", "GPU:0", "device"),
        (ValueError,),
    ),
    errors.IncompatibleNamesError: (("task", 1, 2), (ValueError,)),
    errors.PlanError: (
        ("cv2.rezise", "there is none", "did you mean resize?", "plan.json", 3),
        (ValueError,),
    ),
    errors.UnknownDeviceError: (("cuda:9", ("/device:CUDA:0",), "why"), (LookupError,)),
    errors.UnknownResourceError: (("localhost", "model"), (LookupError,)),
    errors.DeviceConflictError: (("/device:CPU:0", "it is there"), (ValueError,)),
    errors.HostCpuError: (("/device:CPU:0", "others need it"), (ValueError,)),
    errors.RegistrationError: (("NPU", "it is there", "override it"), (ValueError,)),
    errors.BrokenPackageError: (("torch", "shadowed", "it is hidden", "rename it"), (ImportError,)),
    errors.MissingDependencyError: (("torch", "torch"), (ImportError,)),
    errors.ModelError: (("model.onnx", "it is empty", "fetch it again"), (ValueError,)),
    errors.FallbackForbiddenError: (("op", "CUDA:0", "CPU:0", "full", 3), (RuntimeError,)),
    errors.DeviceError: (("it cannot",), (RuntimeError,)),
    errors.NoKernelError: (
        ("op", "CPU:0", {"op for NPU": "no"}, "mend"),
        (RuntimeError, LookupError),
    ),
    errors.RefusedCallError: (
        ("op", "CPU:0", {"op for NPU": "no"}, "mend"),
        (RuntimeError, LookupError),
    ),
    errors.EngineCacheError: (("/a/folder", "belongs to somebody else"), (OSError,)),
    errors.TransferError: (("data.x", "it is sparse", "make it dense"), (TypeError,)),
    errors.ScopeError: (("left elsewhere", "", "use the decorator"), (RuntimeError,)),
    errors.ConfigurationError: (("DEVICECORE_EXCLUDE", "CPU", "any other type"), (ValueError,)),
    errors.NotLiveError: (("CUDA", "missing", "no driver", "install it"), (RuntimeError,)),
    errors.OutOfMemoryError: (("CUDA:0", "asked for 2 GiB"), (RuntimeError, MemoryError)),
    errors.DeviceGoneError: (("CUDA:0", "it was closed"), (RuntimeError,)),
}
CLASSES = list(EXAMPLES)
PLAIN = (DeviceError, errors.ScopeError)  # their arguments are the parts of their message


def made(kind: type[DeviceCoreError]) -> DeviceCoreError:
    return kind(*EXAMPLES[kind][0])


def same(left: BaseException, right: BaseException) -> bool:
    return (type(left), left.args, vars(left), str(left)) == (
        type(right),
        right.args,
        vars(right),
        str(right),
    )


def raise_in_child(kind: type[DeviceCoreError]) -> None:
    raise made(kind)


def test_every_class_is_here() -> None:
    defined = {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__.startswith(errors.__name__)
    }
    assert defined - {DeviceCoreError} == set(CLASSES)


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_is_the_builtin_that_it_is_a_kind_of(kind: type[DeviceCoreError]) -> None:
    error = made(kind)
    assert isinstance(error, DeviceCoreError)
    for builtin in EXAMPLES[kind][1]:
        assert isinstance(error, builtin)


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_pickles_and_copies(kind: type[DeviceCoreError]) -> None:
    error = made(kind)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert same(copy.deepcopy(error), error)


def test_errors_come_out_of_another_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for kind in (errors.UnknownDeviceError, errors.NoKernelError, errors.HostCpuError):
            arrived = pool.submit(raise_in_child, kind).exception()
            assert arrived is not None
            assert str(arrived) == str(made(kind))
            assert arrived.args == made(kind).args


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind not in PLAIN])
def test_facts_are_attributes_and_documented(kind: type[DeviceCoreError]) -> None:
    facts = inspect.signature(kind).parameters
    doc = inspect.getdoc(kind) or ""
    for name, value in zip(facts, EXAMPLES[kind][0], strict=True):
        assert getattr(made(kind), name) == value
        assert f"{name}: " in doc


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not DeviceError])
def test_a_message_says_what_was_wrong_and_more(kind: type[DeviceCoreError]) -> None:
    error = made(kind)
    parts = [part for part in error._parts() if part]
    assert 1 <= len(parts) <= 3
    assert str(error) == "; ".join(parts)
    assert "\n" not in str(error)
    for part in parts:
        assert part.strip() == part
        assert not part.endswith(".")


@pytest.mark.parametrize(
    "kind",
    [
        errors.InvalidDeviceNameError,
        errors.IncompatibleNamesError,
        errors.UnknownDeviceError,
        errors.MissingDependencyError,
        errors.FallbackForbiddenError,
        errors.NoKernelError,
        errors.NotLiveError,
        errors.OutOfMemoryError,
    ],
)
def test_what_users_run_into_has_all_three_parts(kind: type[DeviceCoreError]) -> None:
    wrong, possible, fix = made(kind)._parts()
    assert wrong
    assert possible
    assert fix


def test_empty_facts_leave_no_gaps() -> None:
    for error in (
        errors.UnknownDeviceError("x"),
        errors.NotLiveError("CUDA", "absent"),
        errors.OutOfMemoryError("CUDA:0"),
        errors.RegistrationError("op", "no"),
        errors.InvalidDeviceNameError("?", 0, "no"),
    ):
        assert "; ;" not in str(error)
        assert not str(error).endswith("; ")


def test_an_unknown_name_lists_the_near_one_and_why() -> None:
    error = errors.UnknownDeviceError(
        "cuda:01", ["/job:w/replica:0/task:0/device:CUDA:0", "/device:CPU:0"], "CUDA is missing"
    )
    assert "did you mean 'CUDA:0'?" in str(error)
    assert "(CUDA is missing)" in str(error)
    assert "/device:CPU:0" in str(error)


def test_a_list_of_thousands_is_cut() -> None:
    error = errors.UnknownDeviceError("x", [f"/device:CPU:{i}" for i in range(10_000)])
    assert len(error.known) == 10_000
    assert "and 9988 more" in str(error)
    assert len(str(error)) < 600


def test_a_long_name_is_cut() -> None:
    error = errors.InvalidDeviceNameError("x" * 100_000, 256, "longer than 256 characters")
    assert len(str(error)) < 300


def test_what_another_device_may_do_is_a_device_error() -> None:
    family = {kind for kind in CLASSES if issubclass(kind, DeviceError)}
    assert family == {
        DeviceError,
        NoKernelError,
        errors.RefusedCallError,
        errors.NotLiveError,
        errors.OutOfMemoryError,
        errors.DeviceGoneError,
    }
