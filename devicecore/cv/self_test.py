"""Self-test: a kernel shows on first use that it is as exact as it promises, or is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.native import original
from devicecore.cv.results import to_host
from devicecore.cv.sample_layouts import CHANNELS, samples_of_channels, samples_of_sizes
from devicecore.first_use import first_use
from devicecore.fork import rearm_after_fork
from devicecore.ledger import default_ledger
from devicecore.locks import PatientLock
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from devicecore.cv.operation import Operation
    from devicecore.device import Device
    from devicecore.kernels import Exactness

# Of values that are not integers: how much of the larger one.
_TOLERANCE = 1e-4
# Kernels that are compiled for a number of channels, which takes seconds: tested with each number
# when that is first asked for.
_COMPILED = frozenset({"triton"})


class SelfTests:
    """What the self-test of each kernel has found, on each device and in each environment."""

    def __init__(self) -> None:
        self._found: dict[Any, str] = {}
        self._lock = PatientLock()
        rearm_after_fork(self)

    def reason(self, op: str, device: Device, test: Callable[[], str]) -> str:
        """Return what is wrong with a kernel on *device*, or an empty string.

        Args:
            op: What it computes, with its label.
            device: Where.
            test: Called once for each device and environment; returns what is wrong.
        """
        key = (op, device.name, device.attributes.incarnation, environment())
        failure = self._found.get(key)
        if failure is None:
            with first_use(), self._lock:  # held during the test, so that it runs once
                failure = self._found.get(key)
                if failure is None:
                    failure = self._found[key] = test()
                    if failure:
                        default_ledger().record(op, device.name, host_cpu().name, failure)
        return failure

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = PatientLock()


_self_tests = SelfTests()


def self_test_failure(op: str, device: Device, test: Callable[[], str]) -> str:
    """Return what is wrong with a kernel on *device*; see `SelfTests.reason`."""
    return _self_tests.reason(op, device, test)


def why_untrusted(operation: Operation, device: Device, channels: int) -> str:
    """Return what is wrong with a kernel on *device*, or an empty string; tests it once.

    Args:
        operation: Whose kernel it is.
        device: Where.
        channels: Of the image that it is for.
    """
    op = f"cv2.{operation.name}[{operation.label}]"
    reason = self_test_failure(op, device, lambda: run_self_test(operation, device))
    if reason or operation.label not in _COMPILED:
        return reason
    own = (channels,)
    op = f"{op} of {channels} channels"
    return self_test_failure(op, device, lambda: self_test_channels(operation, device, own))


def run_self_test(operation: Operation, device: Device) -> str:
    """Compare what a kernel makes of its samples with OpenCV's answers.

    Returns:
        Where it first broke its promise, or an empty string.
    """
    reason = _first_fault(operation, device, operation.examples())
    if reason or operation.label in _COMPILED:
        return reason
    return self_test_channels(operation, device, CHANNELS)


def self_test_channels(operation: Operation, device: Device, counts: Iterable[int]) -> str:
    """Do the same for images of so many channels each, and of other sizes and strides."""
    reason = _first_fault(operation, device, samples_of_channels(operation, counts))
    return reason or _first_fault(operation, device, samples_of_sizes(operation))


def _first_fault(
    operation: Operation,
    device: Device,
    samples: Iterable[tuple[Sequence[Any], Mapping[str, Any]]],
) -> str:
    return next(filter(None, (_fault(operation, device, *sample) for sample in samples)), "")


def _fault(
    operation: Operation, device: Device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Return what is wrong with one call, or an empty string."""
    plan = operation.plan(args, kwargs, device)
    if plan is None:
        return ""
    where = torch.device(device.torch_device or "cpu")
    try:
        moved, named = operation.replace_images(
            args, kwargs, lambda x: torch.from_numpy(x).to(where)
        )
        result = operation.run(device, *moved, **named)
    except Exception as error:  # noqa: BLE001 - whatever it is, the kernel does not work
        return f"its self-test failed: {type(error).__name__}: {error}"
    actual = to_host(result, plan.finish)
    # After the kernel, which would else be given what OpenCV has written into an argument.
    try:
        expected = original(operation.name)(*args, **kwargs)
    except cv2.error:  # some layouts of samples are none that OpenCV takes
        return ""
    if keeps_promise(plan.promise, actual, expected):
        return ""
    arguments = ", ".join([*map(_written, args), *map(str, kwargs.items())])
    return f"its self-test found other values than promised ({plan.promise}): {arguments}"


def keeps_promise(promise: Exactness, actual: Any, expected: Any) -> bool:
    """Return whether *actual* is as near to *expected* as was promised."""
    if isinstance(expected, (tuple, list)):
        return (
            isinstance(actual, (tuple, list))
            and len(actual) == len(expected)
            and all(keeps_promise(promise, *pair) for pair in zip(actual, expected, strict=True))
        )
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if promise == "exact":
        return bool(np.array_equal(actual, expected, equal_nan=actual.dtype.kind == "f"))
    if promise == "close":
        return True
    is_finite = np.isfinite(actual) & np.isfinite(expected)
    strange = actual[~is_finite], expected[~is_finite]
    actual, expected = actual[is_finite], expected[is_finite]
    off = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    limit = 1 if promise == "lsb1" and actual.dtype.kind in "iu" else _limit(expected)
    return bool(np.array_equal(*strange, equal_nan=True) and (off <= limit).all())


def _limit(expected: np.ndarray[Any, Any]) -> Any:
    """Return how far a value may be off within tolerance."""
    if expected.dtype.kind in "iu":
        return max(2.0, float(np.iinfo(expected.dtype).max) * _TOLERANCE)
    return _TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0)))


def _written(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else str(value)
