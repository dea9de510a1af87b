"""The functions of `devicecore.cv` on a CUDA GPU: 16 images of 1080 x 1920 bytes that are there.

Run it on the machine itself, from the root:
``PYTHONPATH=. python benchmarks/gpu/cv_functions.py results.json COMMIT``. Each is compared with
OpenCV first, and timed beside CV-CUDA where that is installed and has it, several calls one after
the other; the limit is the time that reading the images and writing the results takes at the speed
of a copy. What the host does for a call is timed with one image, and beside a sum of few numbers by
torch: hosts are not equally fast.
"""

from __future__ import annotations

import json
import sys
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from benchmarks.gpu.timing import copy_speed, host_s, machine, median_s
from devicecore import cv

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE = torch.device("cuda:0")
BATCH, HEIGHT, WIDTH = 16, 1080, 1920
ROUNDS, TOGETHER = 9, 8
SPIN = cv2.getRotationMatrix2D((900, 500), 17, 1.1)
TILT = np.array([[1.02, 0.05, -9], [-0.03, 0.98, 14], [2e-5, -1e-5, 1]])
SHARPER = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
CURVE = np.arange(256, dtype=np.uint8)[::-1].copy()
SIZE = (WIDTH, HEIGHT)


def places() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a map that bends an image a little."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    return columns + 5 * np.sin(rows / 17), rows + 5 * np.cos(columns / 19)


MAPS = places()


@cache
def maps_of(module: Any) -> tuple[Any, Any]:
    """Return the map where a module reads it: on the GPU for ours."""
    if module is cv2:
        return MAPS
    across, down = (torch.from_numpy(each).to(DEVICE) for each in MAPS)
    return across, down


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "resize to 224": lambda m, x: m.resize(x, (224, 224)),
    "resize to 640 x 360, AREA": lambda m, x: m.resize(x, (640, 360), interpolation=cv2.INTER_AREA),
    "resize, NEAREST": lambda m, x: m.resize(x, (640, 360), interpolation=cv2.INTER_NEAREST),
    "cvtColor BGR2RGB": lambda m, x: m.cvtColor(x, cv2.COLOR_BGR2RGB),
    "cvtColor BGR2GRAY": lambda m, x: m.cvtColor(x, cv2.COLOR_BGR2GRAY),
    "cvtColor BGR2HSV": lambda m, x: m.cvtColor(x, cv2.COLOR_BGR2HSV),
    "cvtColor BGR2Lab": lambda m, x: m.cvtColor(x, cv2.COLOR_BGR2Lab),
    "warpAffine": lambda m, x: m.warpAffine(x, SPIN, SIZE),
    "warpPerspective": lambda m, x: m.warpPerspective(x, TILT, SIZE),
    "remap": lambda m, x: m.remap(x, *maps_of(m), cv2.INTER_LINEAR),
    "copyMakeBorder": lambda m, x: m.copyMakeBorder(x, 8, 8, 8, 8, cv2.BORDER_REFLECT_101),
    "flip": lambda m, x: m.flip(x, 1),
    "transpose": lambda m, x: m.transpose(x),
    "LUT": lambda m, x: m.LUT(x, CURVE),
    "add": lambda m, x: m.add(x, x),
    "subtract": lambda m, x: m.subtract(x, x),
    "addWeighted": lambda m, x: m.addWeighted(x, 0.7, x, 0.3, 3.5),
    "multiply": lambda m, x: m.multiply(x, x, scale=0.004),
    "absdiff": lambda m, x: m.absdiff(x, x),
    "threshold": lambda m, x: m.threshold(x, 100, 255, cv2.THRESH_BINARY)[1],
    "GaussianBlur 5 x 5": lambda m, x: m.GaussianBlur(x, (5, 5), 0),
    "GaussianBlur 11 x 11": lambda m, x: m.GaussianBlur(x, (11, 11), 2.5),
    "blur 5 x 5": lambda m, x: m.blur(x, (5, 5)),
    "medianBlur 3": lambda m, x: m.medianBlur(x, 3),
    "medianBlur 5": lambda m, x: m.medianBlur(x, 5),
    "filter2D 3 x 3": lambda m, x: m.filter2D(x, -1, SHARPER),
    "Sobel": lambda m, x: m.Sobel(x, cv2.CV_16S, 1, 0),
    "dilate 3 x 3": lambda m, x: m.dilate(x, np.ones((3, 3), np.uint8)),
    "pyrDown": lambda m, x: m.pyrDown(x),
}


def by_cvcuda() -> dict[str, Callable[[Any], Any]]:
    """Return the same calls of CV-CUDA, where it has them."""
    try:
        import cvcuda  # type: ignore[import-not-found] # not beside the tests
    except ImportError:
        return {}
    border = cvcuda.Border.REFLECT101
    small = (BATCH, 224, 224, 3)
    turned = np.asarray(SPIN, np.float32)
    return {
        "resize to 224": lambda x: cvcuda.resize(x, small, cvcuda.Interp.LINEAR),
        "resize to 640 x 360, AREA": lambda x: cvcuda.resize(
            x, (BATCH, 360, 640, 3), cvcuda.Interp.AREA
        ),
        "resize, NEAREST": lambda x: cvcuda.resize(x, (BATCH, 360, 640, 3), cvcuda.Interp.NEAREST),
        "cvtColor BGR2RGB": lambda x: cvcuda.cvtcolor(x, cvcuda.ColorConversion.BGR2RGB),
        "cvtColor BGR2GRAY": lambda x: cvcuda.cvtcolor(x, cvcuda.ColorConversion.BGR2GRAY),
        "cvtColor BGR2HSV": lambda x: cvcuda.cvtcolor(x, cvcuda.ColorConversion.BGR2HSV),
        "warpAffine": lambda x: cvcuda.warp_affine(x, turned, cvcuda.Interp.LINEAR),
        "warpPerspective": lambda x: cvcuda.warp_perspective(
            x, TILT.astype(np.float32), cvcuda.Interp.LINEAR
        ),
        "copyMakeBorder": lambda x: cvcuda.copymakeborder(
            x, border_mode=border, top=8, bottom=8, left=8, right=8
        ),
        "flip": lambda x: cvcuda.flip(x, 1),
        "GaussianBlur 5 x 5": lambda x: cvcuda.gaussian(x, (5, 5), (1.1, 1.1), border),
        "GaussianBlur 11 x 11": lambda x: cvcuda.gaussian(x, (11, 11), (2.5, 2.5), border),
        "blur 5 x 5": lambda x: cvcuda.averageblur(x, (5, 5), border=border),
        "medianBlur 3": lambda x: cvcuda.median_blur(x, (3, 3)),
        "medianBlur 5": lambda x: cvcuda.median_blur(x, (5, 5)),
    }


def measured(
    images: torch.Tensor, speed: float, peers: dict[str, Callable[[Any], Any]], peer_images: Any
) -> dict[str, Any]:
    """Return what each call takes, and how many values differ from OpenCV's."""
    table: dict[str, Any] = {}
    frame = images[0].cpu().numpy()
    for name, call in CALLS.items():
        result = call(cv, images)
        wrong = int((result[0].cpu().numpy().squeeze() != call(cv2, frame)).sum())
        limit = (images.nbytes + result.nbytes) / speed
        del result
        ours = median_s(partial(call, cv, images), ROUNDS, together=TOGETHER)
        row = {
            "ours, us": ours * 1e6,
            "of the limit": limit / ours,
            "host for one image, us": host_s(partial(call, cv, images[0])) * 1e6,
            "differing": wrong,
        }
        if name in peers:
            try:
                theirs = median_s(partial(peers[name], peer_images), ROUNDS, together=TOGETHER)
            except Exception as error:  # noqa: BLE001 - a peer's fault is no reason to stop
                row["CV-CUDA"] = f"{type(error).__name__}: {error}"[:80]
            else:
                row |= {"CV-CUDA, us": theirs * 1e6, "times CV-CUDA": theirs / ours}
        table[name] = row
    return table


def main() -> int:
    """Compare, time, write the JSON and print the table."""
    speed = copy_speed(DEVICE)
    shape = (BATCH, HEIGHT, WIDTH, 3)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, device=DEVICE)
    peers = by_cvcuda()
    peer_images = sys.modules["cvcuda"].as_tensor(images, "NHWC") if peers else None
    with cv.strict():
        table = measured(images, speed, peers, peer_images)
    few = torch.zeros(16, device=DEVICE)
    peer_us = host_s(partial(torch.add, few, few)) * 1e6
    result = {
        "machine": machine(DEVICE, " ".join(sys.argv[2:])),
        "memory, bytes/s": speed,
        "host for torch.add, us": peer_us,
        "calls": table,
    }
    Path(sys.argv[1]).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for name, row in table.items():
        times = row.get("times CV-CUDA")
        peer = f"{times:6.2f} x CV-CUDA" if times else str(row.get("CV-CUDA", ""))
        share, differing = row["of the limit"], row["differing"]
        host = row["host for one image, us"]
        print(
            f"{name:26} {row['ours, us']:9.0f} us  {share:6.3f} of the limit  "
            f"host {host:5.1f} us  {differing} {peer}"
        )
    print(f"host for torch.add {peer_us:.1f} us")
    wrong = sum(row["differing"] for row in table.values())
    print("OpenCV's pixels" if wrong == 0 else f"WRONG: {wrong} values differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
