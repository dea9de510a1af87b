"""Kernels and their tests draw no random numbers: a program goes on with those of its own seed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from tests.cv.differential import IS_OLD

PROGRAM = """
import random, sys
import cv2, numpy as np, torch
from devicecore.migrate import PipelineMigrator, default_strategies

image = np.arange(40 * 50 * 3, dtype=np.uint8).reshape(40, 50, 3)
names = default_strategies().names(["cv2"])
plan = dict.fromkeys(names, {"device": "cpu", "kernel": "torch", "accept": "tolerance"})
migrator = PipelineMigrator(plan, verify=2)

def calls():
    for _ in range(2):
        cv2.flip(image, 1), cv2.resize(image, (10, 12)), cv2.GaussianBlur(image, (5, 5), 0)
        cv2.warpAffine(image, np.float32([[1, 0.1, 2], [0, 1, 3]]), (30, 30))
        cv2.cvtColor(image, cv2.COLOR_BGR2HSV), cv2.medianBlur(image, 5), cv2.pyrDown(image)
        cv2.LUT(image, np.arange(256, dtype=np.uint8)), cv2.threshold(image, 90, 255, 0)

random.seed(1), np.random.seed(2), torch.manual_seed(3), cv2.setRNGSeed(4)
if sys.argv[1] == "migrated":
    migrator.activate()
calls()
migrator.deactivate()
print(random.random(), np.random.random(), torch.rand(1).item())
print(cv2.randu(np.zeros(3, np.int32), 0, 1_000_000).ravel().tolist())
print(sum(row.migrated for row in migrator.report().rows) > 10, file=sys.stderr)
"""


def run(how: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True
    )
    return done.stdout, done.stderr.splitlines()[-1]


def test_the_next_numbers_are_those_without_us() -> None:
    said, was_migrated = run("migrated")
    assert (said, "False") == run("plain")
    assert was_migrated == "True" or IS_OLD
