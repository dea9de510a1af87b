"""``devicecore demo``: reads the text of a page on the best device that really works."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.cli.listing import print_devices
from devicecore.cli.progress import progress
from devicecore.cli.table import print_table, width_of, wrapped
from devicecore.errors import DeviceError, MissingDependencyError
from devicecore.ledger import default_ledger
from devicecore.optional import package_dir, require
from devicecore.resolution import resolve
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import TextIO

    from devicecore.cli.page_reader.reader import Page
    from devicecore.device import Device

_PACKAGES = ("numpy", "cv2", "PIL", "pyclipper", "onnxruntime")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument(
        "--image", metavar="FILE", type=Path, help="the page to read (default: a sample)"
    )
    parser.add_argument(
        "--device", metavar="NAME", help="the device to read it on (default: the best one)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("devicecore_demo"),
        help="where page.png and page.json go (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print what page.json holds, no more")


def run(args: Namespace, out: TextIO) -> int:
    """Run the command; what it finds goes to *out*.

    Returns:
        0; everything that goes wrong is an error.

    Raises:
        DeviceCoreError: A package is missing, the image cannot be read, nothing that was asked for
            is live, or the results cannot be written.
    """
    for package in _PACKAGES:
        require(package, extra="demo")
    # Late: these import numpy and Pillow, which the other commands do without.
    from devicecore.cli.page_reader.images import load_image
    from devicecore.cli.page_reader.output import prepare_folder, write_page

    source = args.image or _sample()
    start = time.perf_counter()
    image = load_image(source)
    loading = time.perf_counter() - start
    prepare_folder(args.out, source)
    with progress() as show:
        show("choosing a device")
        chosen = resolve(args.device or "auto", framework="onnx")
    if not args.json:
        print_devices(out)
    device, page = _read(image, chosen.device, may_move=args.device is None)
    report = _report(device, page, loading)
    files = write_page(args.out, image, report, host_cpu())
    if args.json:
        print(json.dumps(report, indent=2), file=out)
        return 0
    why = chosen.why if device is chosen.device else f"{chosen.device.label} could not"
    title = f"{source.name}, read on {device.label}: {why}"
    print("", *wrapped(title, 0, width_of(out)), sep="\n", file=out)
    _print(page, report["seconds"], out)
    for file in files:
        print(f"written: {file}", file=out)
    return 0


def _sample() -> Path:
    folder = package_dir("skimage")
    if folder is None:
        raise MissingDependencyError("skimage", "demo")
    return folder / "data" / "page.png"


def _read(image: Any, device: Device, *, may_move: bool) -> tuple[Device, Page]:
    """Read *image* on *device*; if that fails and the device was our choice, on the CPU."""
    from devicecore.cli.page_reader.reader import read_page

    host = host_cpu()
    with progress() as show:
        try:
            return device, read_page(image, device=device, host=host, progress=show)
        except DeviceError as error:
            if not may_move or device is host:
                raise
            default_ledger().record("demo", device.name, host.name, str(error))
            cpu = resolve("cpu", framework="onnx").device
            return cpu, read_page(image, device=cpu, host=host, progress=show)


def _report(device: Device, page: Page, loading: float) -> dict[str, Any]:
    seconds = {"image": loading, **page.seconds}
    seconds["total"] = sum(seconds.values())
    return {
        "device": device.name,
        "lines": [
            {"text": line.text, "score": round(line.score, 4), "box": line.box}
            for line in page.lines
        ],
        "seconds": {stage: round(value, 4) for stage, value in seconds.items()},
    }


def _print(page: Page, seconds: dict[str, float], out: TextIO) -> None:
    print_table([(f"{line.score:.2f}", line.text) for line in page.lines], out)
    if page.lines:
        mean = sum(line.score for line in page.lines) / len(page.lines)
        print(f"{len(page.lines)} lines, mean score {mean:.2f}, by {page.models}", file=out)
    else:
        print(f"no text, by {page.models}", file=out)
    stages = ", ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())
    print_table([("seconds:", stages)], out, indent="")
