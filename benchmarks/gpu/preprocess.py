"""`devicecore.cv.preprocess` on a CUDA GPU, beside CV-CUDA, torchvision, kornia and OpenCV.

Run it on the machine itself, from the root:
``PYTHONPATH=. python benchmarks/gpu/preprocess.py results.json COMMIT``. Checks that every pixel is
OpenCV's first, and prints a short table last. The pipeline: frames of 1080 x 1920 bytes to
224 x 224, BGR to RGB, 5 x 5 Gaussian, normalised float planes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from benchmarks.gpu.timing import copy_speed, machine, median_s
from devicecore import cv, device_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEVICE = torch.device("cuda:0")
BATCH, HEIGHT, WIDTH, SIZE = 64, 1080, 1920, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIGMA = 1.1  # what OpenCV derives from five taps
FRAMES, STREAMS = 400, 5  # of streams of single frames
PHOTOS = 32


def ours(frames: Any) -> torch.Tensor:
    """Return what `preprocess` makes of frames."""
    return cv.preprocess(
        frames, SIZE, mode="stretch", color=cv2.COLOR_BGR2RGB, blur=5, mean=MEAN, std=STD
    )


def by_opencv(frame: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what OpenCV and numpy make of one frame."""
    small = cv2.cvtColor(cv2.resize(frame, (SIZE, SIZE)), cv2.COLOR_BGR2RGB)
    value = cv2.GaussianBlur(small, (5, 5), 0).astype(np.float32) / 255
    value = (value - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return np.ascontiguousarray(value.transpose(2, 0, 1))


def by_cvcuda() -> Callable[[torch.Tensor], Any]:
    """Return the same pipeline of CV-CUDA."""
    import cvcuda  # type: ignore[import-not-found] # not beside the tests

    base = torch.tensor(MEAN, device=DEVICE).view(1, 1, 1, 3)
    scale = torch.tensor(STD, device=DEVICE).view(1, 1, 1, 3)
    base, scale = cvcuda.as_tensor(base, "NHWC"), cvcuda.as_tensor(scale, "NHWC")

    def run(frames: torch.Tensor) -> Any:
        given = cvcuda.as_tensor(frames, "NHWC")
        shape = (len(frames), SIZE, SIZE, 3)
        small = cvcuda.resize(given, shape, cvcuda.Interp.LINEAR)
        rgb = cvcuda.cvtcolor(small, cvcuda.ColorConversion.BGR2RGB)
        blurred = cvcuda.gaussian(rgb, (5, 5), (SIGMA, SIGMA), cvcuda.Border.REFLECT101)
        value = cvcuda.convertto(blurred, np.float32, scale=1 / 255)
        flags = cvcuda.NormalizeFlags.SCALE_IS_STDDEV
        value = cvcuda.normalize(value, base, scale, flags)
        return cvcuda.reformat(value, "NCHW")

    return run


def by_torchvision() -> Callable[[torch.Tensor], Any]:
    """Return the same pipeline of torchvision's transforms v2."""
    from torchvision.transforms.v2 import functional as functions

    def run(frames: torch.Tensor) -> Any:
        planes = frames.permute(0, 3, 1, 2)
        small = functions.resize(planes, [SIZE, SIZE], antialias=False).flip(1)
        blurred = functions.gaussian_blur(small, [5, 5], [SIGMA, SIGMA])
        value = functions.to_dtype(blurred, torch.float32, scale=True)
        return functions.normalize(value, list(MEAN), list(STD))

    return run


def by_kornia() -> Callable[[torch.Tensor], Any]:
    """Return the same pipeline of kornia."""
    import kornia

    mean, std = torch.tensor(MEAN, device=DEVICE), torch.tensor(STD, device=DEVICE)

    def run(frames: torch.Tensor) -> Any:
        planes = frames.permute(0, 3, 1, 2).flip(1).float().div_(255)
        small = kornia.geometry.resize(planes, (SIZE, SIZE), align_corners=False)
        blurred = kornia.filters.gaussian_blur2d(small, (5, 5), (SIGMA, SIGMA))
        return kornia.enhance.normalize(blurred, mean, std)

    return run


def peers() -> dict[str, Callable[[torch.Tensor], Any]]:
    """Return the pipelines of whoever is installed, ours first."""
    found: dict[str, Callable[[torch.Tensor], Any]] = {"devicecore": ours}
    for name, make in (
        ("CV-CUDA", by_cvcuda),
        ("torchvision v2", by_torchvision),
        ("kornia", by_kornia),
    ):
        with suppress(ImportError):
            found[name] = make()
    return found


def resident(found: dict[str, Callable[[torch.Tensor], Any]]) -> dict[str, float]:
    """Return frames a second of each pipeline, 64 of them on the GPU."""
    frames = torch.randint(0, 256, (BATCH, HEIGHT, WIDTH, 3), dtype=torch.uint8, device=DEVICE)
    return {name: BATCH / median_s(partial(run, frames)) for name, run in found.items()}


def stream(run: Callable[[Any], Any], frames: Sequence[Any]) -> float:
    """Return frames a second, each copied from page-locked memory by itself; of several streams."""
    found = []
    for _ in range(1 + STREAMS):
        start = time.perf_counter()
        for count in range(FRAMES):
            run(frames[count % len(frames)])
        torch.cuda.synchronize()
        found.append(FRAMES / (time.perf_counter() - start))
    return statistics.median(found[1:])


def one_at_a_time(found: dict[str, Callable[[torch.Tensor], Any]]) -> dict[str, float]:
    """Return frames a second of each pipeline with the copy; ours is given the host's frames."""
    frames = [
        torch.randint(0, 256, (HEIGHT, WIDTH, 3), dtype=torch.uint8).pin_memory() for _ in range(8)
    ]
    pageable = [frame.numpy().copy() for frame in frames]
    there = torch.empty((HEIGHT, WIDTH, 3), dtype=torch.uint8, device=DEVICE)
    speeds = {"the copy alone": stream(lambda frame: there.copy_(frame, non_blocking=True), frames)}
    with device_scope("cuda:0"):
        speeds["devicecore"] = stream(lambda frame: ours(frame.numpy()), frames)
        speeds["devicecore, pageable"] = stream(ours, pageable)
    for name, run in found.items():
        if name != "devicecore":
            speeds[name] = stream(partial(copied_first, run), frames)
    return speeds


def copied_first(run: Callable[[torch.Tensor], Any], frame: torch.Tensor) -> Any:
    """Run a pipeline on one frame of the host."""
    return run(frame.to(DEVICE, non_blocking=True)[None])


def on_cores() -> dict[str, float]:
    """Return frames a second of OpenCV on one core, and on 16 threads of one core each."""
    cv2.setNumThreads(1)
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    speeds = {}
    for threads in (1, 16):
        with ThreadPoolExecutor(threads) as pool:
            start = time.perf_counter()
            list(pool.map(by_opencv, [frame] * 60 * threads))
            speeds[f"OpenCV, {threads} cores"] = 60 * threads / (time.perf_counter() - start)
    return speeds


def ragged() -> dict[str, float]:
    """Return batches a second of 32 photos of any sizes in letterboxes of 640, on the GPU."""
    chance = np.random.default_rng(0)
    photos = [
        torch.randint(0, 256, (*map(int, size), 3), dtype=torch.uint8, device=DEVICE)
        for size in chance.integers(300, 1300, (PHOTOS, 2))
    ]
    call = {"devicecore": lambda: cv.preprocess(photos, 640, mean=MEAN, std=STD)}
    with suppress(ImportError):
        from torchvision.transforms.v2 import functional as functions

        def boxed(photo: torch.Tensor) -> Any:
            height, width = photo.shape[:2]
            factor = min(640 / height, 640 / width)
            high, wide = round(height * factor), round(width * factor)
            small = functions.resize(photo.permute(2, 0, 1), [high, wide], antialias=False)
            left, top = (640 - wide) // 2, (640 - high) // 2
            around = [left, top, 640 - wide - left, 640 - high - top]
            return functions.pad(small, around, fill=114)

        def by_vision() -> Any:
            batch = torch.stack([boxed(photo) for photo in photos])
            value = functions.to_dtype(batch, torch.float32, scale=True)
            return functions.normalize(value, list(MEAN), list(STD))

        call["torchvision v2"] = by_vision
    return {name: 1 / median_s(each) for name, each in call.items()}


def differing() -> int:
    """Return how many values differ from OpenCV's, of frames and of photos of any sizes."""
    chance = np.random.default_rng(1)
    frames = [chance.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(4)]
    frames += [
        chance.integers(0, 256, (*map(int, size), 3), np.uint8)
        for size in chance.integers(3, 900, (24, 2))
    ]
    with device_scope("cuda:0"):
        found = ours(frames).cpu().numpy()
    return sum(
        int((by_opencv(frame) != own).sum()) for frame, own in zip(frames, found, strict=True)
    )


def main() -> int:
    """Check, time, write the JSON and print the table."""
    wrong = differing()
    found = peers()
    touched = 2 * SIZE * WIDTH * 3 + SIZE * SIZE * 3 * 4  # two rows for each row, and the result
    speed = copy_speed(DEVICE)
    limit = speed / touched
    tables = {
        "resident, frames/s": resident(found),
        "one at a time from page-locked memory, frames/s": one_at_a_time(found) | on_cores(),
        "32 photos to letterboxes of 640, batches/s": ragged(),
    }
    result = {
        "machine": machine(DEVICE, " ".join(sys.argv[2:])),
        "differing values": wrong,
        "memory, bytes/s": speed,
        "memory limit, frames/s": limit,
        **tables,
    }
    Path(sys.argv[1]).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for title, table in tables.items():
        print(title)
        for name, value in table.items():
            print(f"  {name:24} {value:12.0f}  {table['devicecore'] / value:8.2f} x")
    share = tables["resident, frames/s"]["devicecore"] / limit
    print(f"resident: {share:.2f} of the memory limit of {limit:.0f} frames/s")
    print("OpenCV's pixels" if wrong == 0 else f"WRONG: {wrong} values differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
