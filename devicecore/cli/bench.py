"""``devicecore bench``: how fast each device runs a model, and if it agrees with the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.cli.model_bench.children import ChildError, call_in_child
from devicecore.cli.model_bench.report import as_data, print_report
from devicecore.cli.model_bench.values import DeviceResult, Inputs, Task
from devicecore.cli.progress import progress
from devicecore.cli.temporary import temporary_folder
from devicecore.cli.usage import UsageError
from devicecore.device_factory import DeviceOptions
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import DeviceCoreError, MissingDependencyError, NotLiveError
from devicecore.optional import installed
from devicecore.ort import CACHE_POLICIES, PRECISIONS
from devicecore.ort.model_file import checked_model
from devicecore.runtime import default_runtime, host_cpu

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from devicecore.cli.model_bench.values import Reference
    from devicecore.device import Device

_ALL = "all"
_NOT_LIVE = 1
_MOST_DIGITS = 18  # of a size of an array


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="the .onnx file")
    parser.add_argument(
        "--devices",
        metavar="NAME,NAME",
        default=_ALL,
        help="names, or all that are live for ONNX models (default: %(default)s)",
    )
    parser.add_argument(
        "--runs", metavar="N", type=int, default=100, help="at most so many (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        default=10.0,
        help="start no run later than this after the first one (default: %(default)g)",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="f32",
        help="float32, or what each provider takes by itself (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        choices=CACHE_POLICIES,
        default="engines",
        help="what is kept from one call to the next, so that it loads faster; none for a first "
        "load (default: %(default)s)",
    )
    parser.add_argument(
        "--shape",
        metavar="INPUT=1,3,640,640",
        action="append",
        default=[],
        help="the shape of an input that the model leaves open",
    )
    parser.add_argument(
        "--inputs",
        metavar="FILE.npz",
        type=Path,
        help="an array for each input, instead of random ones",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=float,
        default=600.0,
        help="stop a device that takes longer in all (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print plain data")


def run(args: Namespace, out: TextIO) -> int:
    """Run the command; what it finds goes to *out*.

    Returns:
        0; 1 if no device ran the model, or one that was named did not.

    Raises:
        UsageError: The arguments are not what the command or the model takes.
        ModelError: The model is at fault, or refuses the inputs.
        UnknownDeviceError: There is no such device.
        NotLiveError: A device that was named does not work.
        MissingDependencyError: ONNX Runtime is not installed.
        ChildError: The CPU could not run the model.
        TemporaryFolderError: There is no place for its inputs and outputs.
    """
    inputs = _inputs(args)
    _above_zero(args, "runs", "seconds", "timeout")
    checked_model(args.model)
    if not installed("onnxruntime"):
        raise MissingDependencyError("onnxruntime", "onnx")
    with (
        temporary_folder() as folder,
        progress() as show,
    ):
        show("probing the devices")
        devices = _devices(args.devices)
        task = Task(
            model=args.model,
            folder=folder,
            device=host_cpu().name,
            precision=args.precision,
            runs=args.runs,
            seconds=args.seconds,
            cache=args.cache,
        )
        known = _reference(task, inputs, args.timeout, _named(show, "reference"))
        results = []
        for device in devices:
            mine = evolve(task, device=device.name)
            results.append(_result(device, mine, known, args.timeout, show))
    if args.json:
        print(json.dumps(as_data(task, known, results), indent=2), file=out)
    else:
        print_report(task, known, results, out)
    failed = [each for each in results if each.figures is None]
    enough = len(results) if args.devices == _ALL else 1
    return _NOT_LIVE if len(failed) >= enough else 0


def _reference(
    task: Task, inputs: Inputs, timeout_s: float, show: Callable[[str], None]
) -> Reference:
    from devicecore.cli.model_bench.measure import reference  # late: it imports numpy

    try:
        known: Reference = call_in_child(reference, task, inputs, timeout_s=timeout_s, show=show)
    except ChildError as error:
        msg = f"{task.model.name} was not run on the CPU, with which all are compared: {error}"
        raise ChildError(msg) from error
    return known


def _result(
    device: Device, task: Task, known: Reference, timeout_s: float, show: Callable[[str], None]
) -> DeviceResult:
    from devicecore.cli.model_bench.measure import measure

    result = DeviceResult(device.name, device.attributes.description)
    watch = _named(show, result.short)
    try:
        figures = call_in_child(measure, task, known, timeout_s=timeout_s, show=watch)
    except DeviceCoreError as error:
        return evolve(result, error=str(error))
    return evolve(result, figures=figures)


def _named(show: Callable[[str], None], name: str) -> Callable[[str], None]:
    return lambda words: show(f"{name}: {words or 'starting'}")


def _devices(words: str) -> Sequence[Device]:
    """Return the devices to measure, the best one first or as they are named."""
    if words == _ALL:
        manager = DeviceMgr.create(DeviceOptions(frameworks=("onnx",)))
        live = [each for each in sorted(manager, key=manager.rank) if each.session is not None]
        manager.close()  # each is opened anew in its own process
        return live
    names = [name.strip() for name in words.split(",") if name.strip()]
    if not names:
        msg = "--devices names no device"
        raise UsageError(msg, "give names, or all")
    found = {}
    for name in names:
        device = default_runtime().device(name, "onnx")
        if device.session is None:
            raise NotLiveError(device.name, "absent", "ONNX Runtime has no provider for it")
        found[device.name] = device
    return list(found.values())


def _inputs(args: Namespace) -> Inputs:
    if args.shape and args.inputs:
        msg = "--shape and --inputs both say which inputs the model gets"
        raise UsageError(msg, "give one of them")
    return Inputs(dict(map(_shape, args.shape)), args.inputs)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
    if not name or not all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts):
        msg = f"--shape {text} names no input and its sizes"
        raise UsageError(msg, "write it as --shape input=1,3,640,640")
    return name, tuple(map(int, parts))


def _above_zero(args: Namespace, *names: str) -> None:
    for name in names:
        value = getattr(args, name)
        if not value > 0:
            msg = f"--{name} is {value:g}"
            raise UsageError(msg, "it is a number above 0")
