# Written as people write for OpenCV.
# ruff: noqa: ANN001, ANN201, N806, PTH118, RUF059, T201
# mypy: ignore-errors
"""Follow a green ball through a video, by its colour and by what moves."""

import sys
import zlib
from collections import deque
from os.path import join

import cv2
import numpy as np

GREEN_LOWER, GREEN_UPPER = (40, 120, 60), (80, 255, 255)


def video(background, frames=12):
    """Yield the frames of a ball that flies over a photo, with a camera's noise."""
    rng = np.random.default_rng(7)
    for t in range(frames):
        frame = background.copy()
        center = 30 + 26 * t, int(150 - 90 * np.sin(t / 4))
        cv2.circle(frame, center, 17, (60, 200, 40), -1)
        noise = rng.integers(0, 12, frame.shape, dtype=np.uint8)
        yield cv2.add(frame, noise)


def find_ball(frame):
    blurred = cv2.GaussianBlur(frame, (11, 11), 0)
    hsv = cv2.cvtColor(blurred, cv2.COLOR_BGR2HSV)
    mask = cv2.inRange(hsv, GREEN_LOWER, GREEN_UPPER)
    mask = cv2.erode(mask, None, iterations=2)
    mask = cv2.dilate(mask, None, iterations=2)
    contours = cv2.findContours(mask.copy(), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[-2]
    if not contours:
        return mask, None, 0
    c = max(contours, key=cv2.contourArea)
    (x, y), radius = cv2.minEnclosingCircle(c)
    M = cv2.moments(c)
    return mask, (int(M["m10"] / M["m00"]), int(M["m01"] / M["m00"])), radius


def moved(frame, before):
    gray = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
    if before is None:
        return gray, 0
    delta = cv2.absdiff(before, gray)
    _, thresh = cv2.threshold(delta, 25, 255, cv2.THRESH_BINARY)
    thresh = cv2.dilate(thresh, None, iterations=2)
    return gray, cv2.countNonZero(thresh)


def main():
    background = cv2.imread(join(sys.argv[1], "coffee.png"))
    background = cv2.resize(background, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)
    average = np.float32(background)
    points, before = deque(maxlen=8), None
    for number, frame in enumerate(video(background)):
        mask, center, radius = find_ball(frame)
        before, changed = moved(frame, before)
        average = cv2.addWeighted(average, 0.9, frame.astype(np.float32), 0.1, 0)
        points.appendleft(center)
        for i in range(1, len(points)):
            if points[i - 1] is None or points[i] is None:
                continue
            thickness = int(np.sqrt(8 / float(i + 1)) * 2.5)
            cv2.line(frame, points[i - 1], points[i], (0, 0, 255), thickness)
        cutout = cv2.bitwise_and(frame, frame, mask=mask)
        print(number, center, round(radius, 3), changed, cv2.countNonZero(mask), zlib.crc32(cutout))
    print(zlib.crc32(cv2.convertScaleAbs(average)), [round(v, 3) for v in cv2.mean(average)])


if __name__ == "__main__":
    main()
