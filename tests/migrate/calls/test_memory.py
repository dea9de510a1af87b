"""However many calls a program makes, the migrator's memory does not grow.

Counted is all memory of a process of its own, that of torch and OpenCV too: what is lost there,
Python does not know of.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("psutil")

from tests.cv.differential import IS_OLD

CALLS = 100_000

PROGRAM = """
import gc, logging, sys
import cv2, numpy as np, psutil, torch
from devicecore.migrate import PipelineMigrator

torch.set_num_threads(1)
kind, calls, lost = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
image = np.zeros((3, 3, 3), np.uint8)
several = np.zeros((1, 2, 2, 2), np.uint8)
images = [np.zeros((rows, columns, 3), np.uint8) for rows in range(1, 8) for columns in range(1, 8)]
kept = []

def frame():
    return cv2.flip(image, 1)

def one(number):
    if kind == "migrated":
        cv2.flip(images[number % len(images)], number % 2)
    elif kind == "off the plan":
        cv2.flip(image, 1)
    elif kind == "refused":
        cv2.add(several, several)
    elif kind == "of a frame":
        frame()
    if lost:
        kept.append(bytearray(lost))

def call(times):
    for number in range(times):
        one(number)
    gc.collect()

torch_on_the_cpu = {"device": "cpu", "kernel": "torch"}
plan = {
    "migrated": {"cv2.flip": torch_on_the_cpu},
    "off the plan": {"__main__:frame/cv2.flip": torch_on_the_cpu},
    "refused": {"cv2.add": torch_on_the_cpu},
    "of a frame": {"__main__:frame": torch_on_the_cpu},
}[kind]
process = psutil.Process()
with PipelineMigrator(plan) as migrator:
    call(5_000)
    before = process.memory_info().rss
    call(calls)
    grown = process.memory_info().rss - before
rows = migrator.report().rows
print(grown, sum(row.migrated for row in rows), sum(row.fell_back for row in rows))
"""


def grown(kind: str, calls: int, lost: int = 0) -> tuple[int, int, int]:
    """Return by how many bytes a process has grown, and how many calls were migrated, and not."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, str(calls), str(lost)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    bytes_more, migrated, fell_back = map(int, done.stdout.split())
    return bytes_more, migrated, fell_back


def most_bytes(calls: int) -> int:
    """Return less than the smallest object of Python for each call, but a few pages at least."""
    return max(12 * calls, 1 << 19)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("migrated", CALLS),
        ("off the plan", CALLS),
        ("refused", CALLS),
        ("of a frame", CALLS // 5),
        pytest.param("of a frame", CALLS, marks=pytest.mark.slow),
    ],
)
def test_calls_leave_nothing_behind(kind: str, calls: int) -> None:
    bytes_more, migrated, fell_back = grown(kind, calls)
    assert bytes_more < most_bytes(calls)
    assert (fell_back >= calls) is (kind == "refused") or IS_OLD
    assert (migrated >= calls) is (kind in {"migrated", "of a frame"}) or IS_OLD


def test_a_small_object_for_each_call_would_be_noticed() -> None:
    assert grown("off the plan", CALLS, lost=1)[0] > most_bytes(CALLS)
