"""Unchanged programs of OpenCV and numpy on a CUDA GPU by plans, beside peers that are called.

Run it on the machine itself, from the root:
``PYTHONPATH=. python benchmarks/gpu/migrate.py results.json COMMIT``. Checks that every value is
the program's own first, and prints a short table last.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.gpu.preprocess import BATCH, DEVICE, HEIGHT, WIDTH, by_opencv, peers
from benchmarks.gpu.timing import machine
from devicecore.migrate import DeviceLoader, PipelineMigrator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Array = np.ndarray[Any, Any]

FRAMES, ROUNDS = 3840, 7
PHOTOS = 1024
HEAVY = 64
WORKERS = 8
CORES = 16
PREPARED = {"benchmarks.gpu.preprocess:by_opencv": "cuda:0"}


def augmented(image: Array, turn: float = 7.0) -> Array:
    """Return what a heavy augmentation makes of one frame."""
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), turn, 1.05)
    image = cv2.warpAffine(image, matrix, (width, height), borderMode=cv2.BORDER_REFLECT_101)
    image = cv2.GaussianBlur(image, (11, 11), 0)
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2HSV))
    hue = cv2.LUT(hue, ((np.arange(256) + turn) % 180).astype(np.uint8))
    saturation = cv2.LUT(saturation, np.clip(np.arange(256) * 1.1, 0, 255).astype(np.uint8))
    image = cv2.cvtColor(cv2.merge((hue, saturation, value)), cv2.COLOR_HSV2BGR)
    light, red, blue = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2Lab))
    light = cv2.createCLAHE(2.0, (8, 8)).apply(light)
    image = cv2.cvtColor(cv2.merge((light, red, blue)), cv2.COLOR_Lab2BGR)
    return cv2.resize(image, (640, 640))


class Frames(Dataset[Any]):
    """Frames in memory, made the input of a network.

    Args:
        frames: The frames.
        count: How many samples there are.
        prepare: What is done with each.
    """

    def __init__(
        self, frames: Sequence[Array], count: int, prepare: Callable[[Array], Array] = by_opencv
    ) -> None:
        self._frames = frames
        self._count = count
        self._prepare = prepare.__name__

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        # By its name, as programs call their functions.
        return globals()[self._prepare](self._frames[index % len(self._frames)])


class Turned(Frames):
    """Frames that are augmented by other numbers each, as programs do that draw them."""

    def __getitem__(self, index: int) -> Any:
        return augmented(self._frames[index % len(self._frames)], index % 90 / 4)


class Photos(Dataset[Any]):
    """JPEG files in memory, decoded and made the input of a network.

    Args:
        files: The files.
        count: How many samples there are.
    """

    def __init__(self, files: Sequence[Array], count: int) -> None:
        self._files = files
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        image = cv2.imdecode(self._files[index % len(self._files)], cv2.IMREAD_COLOR)
        assert image is not None
        return by_opencv(image)


def speed(batches: Callable[[], Iterable[Any]], count: int) -> float:
    """Return samples a second; of several rounds after one that is not counted."""
    found = []
    for _ in range(1 + ROUNDS):
        start = time.perf_counter()
        for batch in batches():
            del batch
        torch.cuda.synchronize()
        found.append(count / (time.perf_counter() - start))
    return statistics.median(found[1:])


def differing(found: Iterable[Any], expected: Sequence[Any]) -> int:
    """Return how many values of batches on the GPU are not the program's own."""
    values = torch.cat([batch.cpu() for batch in found])
    wanted = torch.from_numpy(np.stack(expected))
    return int((values[: len(wanted)] != wanted).sum())


def copied(frames: Sequence[torch.Tensor]) -> Callable[[], Iterable[Any]]:
    """Return what only copies frames to the GPU."""
    there = torch.empty((BATCH, HEIGHT, WIDTH, 3), dtype=torch.uint8, device=DEVICE)

    def run() -> Iterable[Any]:
        for first in range(0, FRAMES, BATCH):
            for place in range(BATCH):
                there[place].copy_(frames[(first + place) % len(frames)], non_blocking=True)
            yield None

    return run


def by_peer(
    run: Callable[[torch.Tensor], Any], frames: Sequence[torch.Tensor]
) -> Callable[[], Iterable[Any]]:
    """Return what copies frames to the GPU, and gives a peer one batch after the other."""

    def batches() -> Iterable[Any]:
        for first in range(0, FRAMES, BATCH):
            there = torch.empty((BATCH, HEIGHT, WIDTH, 3), dtype=torch.uint8, device=DEVICE)
            for place in range(BATCH):
                there[place].copy_(frames[(first + place) % len(frames)], non_blocking=True)
            yield run(there)

    return batches


def from_memory(*, is_pinned: bool) -> dict[str, float]:
    """Return frames a second from page-locked, or from pageable memory."""
    chance = np.random.default_rng(3)
    arrays = [chance.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(16)]
    frames = [torch.from_numpy(each) for each in arrays]
    if is_pinned:
        frames = [frame.pin_memory() for frame in frames]
    held = [frame.numpy() for frame in frames]
    speeds = {"the copy alone": speed(copied(frames), FRAMES)}
    expected = [by_opencv(frame) for frame in held]

    # What may change is copied first.
    for kind in ("immutable frames", "frames that may change"):
        for workers in (0, WORKERS):
            loader = DeviceLoader(
                Frames(held, FRAMES),
                PREPARED,
                batch_size=BATCH,
                num_workers=workers,
                persistent_workers=workers > 0,
                immutable=kind == "immutable frames",
                strict=True,
            )
            wrong = differing(loader, expected)
            assert wrong == 0, f"{wrong} values differ"
            name = f"devicecore, lifted, {kind}, {workers} workers"
            speeds[name] = speed(partial(iter, loader), FRAMES)
    for name, run in peers().items():
        if name != "devicecore":
            speeds[name] = speed(by_peer(run, frames), FRAMES)
    return speeds


def from_files() -> dict[str, float]:
    """Return photos a second, decoded by workers."""
    chance = np.random.default_rng(4)
    files = []
    for _ in range(32):
        small = chance.integers(0, 256, (HEIGHT // 12, WIDTH // 12, 3), np.uint8)
        image = cv2.resize(small, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        files.append(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1])
    photos = Photos(files, PHOTOS)
    options: dict[str, Any] = {"batch_size": 16, "num_workers": WORKERS}
    expected = [photos[index] for index in range(32)]
    start = time.perf_counter()
    for file in files:
        cv2.imdecode(file, cv2.IMREAD_COLOR)
    print(f"one photo is decoded in {(time.perf_counter() - start) / 32 * 1e3:.1f} ms")

    def plain() -> Iterable[Any]:
        for batch in without:
            yield batch.to(DEVICE, non_blocking=True)

    options["persistent_workers"] = True
    without = DataLoader(photos, pin_memory=True, **options)
    lifted = DeviceLoader(photos, PREPARED, strict=True, **options)
    wrong = differing(lifted, expected)
    assert wrong == 0, f"{wrong} values differ"
    return {
        "devicecore, lifted": speed(lambda: lifted, PHOTOS),
        "the same loader without it": speed(plain, PHOTOS),
    }


def heavily() -> dict[str, float]:
    """Return frames a second of a heavy augmentation."""
    cv2.setNumThreads(1)
    chance = np.random.default_rng(5)
    frames = [chance.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(8)]
    expected = [augmented(frame) for frame in frames]
    speeds = {}
    for threads in (1, CORES):
        with ThreadPoolExecutor(threads) as pool:
            work = frames * 2 * threads
            start = time.perf_counter()
            list(pool.map(augmented, work))
            speeds[f"OpenCV, {threads} cores"] = len(work) / (time.perf_counter() - start)
    plans = {name: {"device": "cuda:0", "residency": name} for name in ("plain", "scoped")}
    for name, options in plans.items():
        with PipelineMigrator({f"{__name__}:augmented": options}) as migrator:
            wrong = sum(
                int((augmented(frame) != wanted).sum())
                for frame, wanted in zip(frames, expected, strict=True)
            )
            assert wrong == 0, f"{wrong} values differ"
            for threads in (1, 4):
                with ThreadPoolExecutor(threads) as pool:
                    count = HEAVY * threads if name == "scoped" else 8
                    work = [frames[index % 8] for index in range(count)]
                    found = []
                    for _ in range(3):
                        start = time.perf_counter()
                        list(pool.map(augmented, work))
                        found.append(len(work) / (time.perf_counter() - start))
                    speeds[f"devicecore, {name}, {threads} threads"] = max(found[1:])
            print(migrator.report())

    alike, turned = Frames(frames, 4 * HEAVY, augmented), Turned(frames, 4 * HEAVY)
    for name, dataset in (("", alike), (", other numbers for each frame", turned)):
        plan = {f"{__name__}:augmented": "cuda:0"}
        loader = DeviceLoader(dataset, plan, batch_size=16, strict=True)
        wrong = differing(loader, [dataset[index] for index in range(16)])
        assert wrong == 0, f"{wrong} values differ"
        speeds[f"devicecore, lifted, batches of 16{name}"] = speed(partial(iter, loader), 4 * HEAVY)
    return speeds


def main() -> int:
    """Check, time, write the JSON and print the table."""
    tables: dict[str, dict[str, float]] = {}
    for title, measure in (
        ("from page-locked memory, frames/s", partial(from_memory, is_pinned=True)),
        ("from pageable memory, frames/s", partial(from_memory, is_pinned=False)),
        ("photos decoded by 8 workers, photos/s", from_files),
        ("heavy augmentation, frames/s", heavily),
    ):
        tables[title] = measure()
        print(title)
        for name, value in tables[title].items():
            print(f"  {name:48} {value:10.0f}")
        Path(sys.argv[1]).write_text(
            json.dumps({"machine": machine(DEVICE, " ".join(sys.argv[2:])), **tables}, indent=2)
            + "\n",
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    # The plans name functions of this module, and those of a program's own file are `__main__`'s.
    from benchmarks.gpu.migrate import main as run

    sys.exit(run())
